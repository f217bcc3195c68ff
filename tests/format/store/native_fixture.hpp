#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "numbered_tensor.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/chunks.hpp"
#include "remesh/store/native_store.hpp"
#include "remesh/store/tally.hpp"

namespace remesh::test {

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline void set_content(const std::filesystem::path& path, std::string_view content) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(content.data(), static_cast<std::streamsize>(content.size()));
}

/// The content of a side file is its name, twice.
inline std::vector<std::byte> side_bytes(const SideFile& side) {
  return bytes_of(side.name + side.name);
}

inline SideFile side_file(std::string name) {
  SideFile side{std::move(name), 0, {}};
  const auto bytes = side_bytes(side);
  side.size_bytes = std::ssize(bytes);
  side.digest = digest_of(bytes);
  return side;
}

/// A catalog on 2 x 2 ranks (tp fastest): each tensor split by the placement of that number, which
/// is 0: replicated, 1: dim 0 over tp, 2: dim 1 over tp, 3: the last stage of pp alone.
inline Catalog small_catalog(std::vector<std::pair<TensorDesc, std::uint32_t>> tensors) {
  Catalog catalog;
  catalog.format = "remesh";
  std::vector<Placed> placed;
  for (auto& [desc, placement] : tensors) {
    catalog.tensors.push_back(std::move(desc));
    placed.push_back({placement, -1});
  }
  const std::vector<Placement> placements{
      {},
      {.splits = {{.dim = 0, .over = {"tp"}}}, .pins = {}},
      {.splits = {{.dim = 1, .over = {"tp"}}}, .pins = {}},
      {.splits = {}, .pins = {{.axis = "dp", .to = PinTo::coordinates, .coordinates = {1}}}}};
  catalog.layout = Layout(Mesh({{"tp", 2}, {"dp", 2}}), placements, placed, {});
  return catalog;
}

/// Every dtype, split over tp; a scalar; tensors without elements; odd names; uneven splits.
inline Catalog every_kind_of_tensor() {
  std::vector<std::pair<TensorDesc, std::uint32_t>> tensors;
  for (const DType dtype : all_dtypes()) {
    tensors.push_back({{"all." + std::string(to_string(dtype)), dtype, Box{{0, 6}, {0, 8}}}, 1});
  }
  tensors.push_back({{"scalar", DType::f32, Box{}}, 0});
  tensors.push_back({{"empty", DType::i64, Box{{0, 0}, {0, 3}}}, 0});
  tensors.push_back({{"empty.split", DType::bf16, Box{{0, 4}, {0, 0}}}, 1});
  tensors.push_back({{"columns", DType::f32, Box{{0, 3}, {0, 5}}}, 2});
  tensors.push_back({{"odd \"name\"/with%/\u00e9.@exp_avg", DType::u8, Box{{0, 7}}}, 3});
  tensors.push_back({{"..", DType::u16, Box{{0, 2}}}, 0});
  tensors.push_back({{"one row", DType::f16, Box{{0, 1}, {0, 9}}}, 1});
  Catalog catalog = small_catalog(std::move(tensors));
  catalog.side = {side_file("config.json"), side_file("tokenizer.model")};
  catalog.run_id = "run 7";
  return catalog;
}

/// One tensor of each storage class on 2 x 2 ranks: what the damage tests spoil.
inline Catalog tiny_catalog() {
  Catalog catalog = small_catalog(
      {{{"w", DType::f32, Box{{0, 4}, {0, 2}}}, 1}, {{"bias", DType::bf16, Box{{0, 3}}}, 0}});
  catalog.side = {side_file("config.json")};
  return catalog;
}

inline std::vector<Digest> true_digests(const Catalog& catalog) {
  std::vector<Digest> digests;
  for (const TensorDesc& desc : catalog.tensors) digests.push_back(digest_of(numbered(desc)));
  return digests;
}

inline std::vector<Digest> true_blocks(const Catalog& catalog, const ExtentMap& extents) {
  std::vector<Digest> blocks;
  for (const Extent& extent : extents.extents()) {
    const auto bytes = numbered(catalog.tensors[extent.tensor], extent.box);
    for (std::int64_t at = 0; at < std::ssize(bytes); at += ExtentMap::block_bytes) {
      const auto length = std::min(ExtentMap::block_bytes, std::ssize(bytes) - at);
      blocks.push_back(digest_of(std::span(bytes).subspan(static_cast<std::size_t>(at),
                                                          static_cast<std::size_t>(length))));
    }
  }
  return blocks;
}

/// Writes the numbered content of every piece, and of those in chunks chunk by chunk.
inline void write_all(Writer& writer, const Tap& tap = {}) {
  for (const Extent& extent : writer.extents().extents()) {
    if (extent.copy > 0) continue;
    const TensorDesc& desc = writer.catalog().tensors[extent.tensor];
    const std::int64_t chunks = is_chunked(extent) ? num_chunks(extent) : 1;
    for (std::int64_t k = 0; k < chunks; ++k) {
      const Box box = is_chunked(extent) ? chunk_box(extent, k) : extent.box;
      writer.write(extent.tensor, box, numbered(desc, box), tap);
    }
  }
}

inline void seal(Writer& writer) {
  writer.seal(true_digests(writer.catalog()), true_blocks(writer.catalog(), writer.extents()));
}

/// Writes all and seals it with the CRCs of what was written, which of frames nothing else knows.
inline void write_all_and_seal(Writer& writer) {
  Tally tally(writer.catalog().tensors, writer.extents(), /*with_blocks=*/true);
  write_all(writer, tally.tap());
  const std::span<const Extent> extents = writer.extents().extents();
  std::vector<Digest> blocks;
  for (std::size_t number = 0; number < extents.size(); ++number) {
    for (std::int64_t k = 0; k < num_blocks(extents[number]); ++k) {
      blocks.push_back(tally.block(number, k));
    }
  }
  writer.seal(true_digests(writer.catalog()), blocks);
}

inline std::unique_ptr<Writer> start(const std::filesystem::path& path, const Catalog& catalog,
                                     const WriterOptions& options = {.job_id = "test"},
                                     FileSystem& files = posix_file_system()) {
  return create_native(files, path, catalog, side_bytes, options);
}

inline void write_checkpoint(const std::filesystem::path& path, const Catalog& catalog,
                             const WriterOptions& options = {.job_id = "test"},
                             FileSystem& files = posix_file_system()) {
  const auto writer = start(path, catalog, options, files);
  write_all_and_seal(*writer);
  writer->publish();
}

inline std::unique_ptr<Reader> open_strict(const std::filesystem::path& path) {
  StrictFindings findings;
  return open_native(posix_file_system(), path, findings);
}

/// The ids of all findings, in order.
inline std::vector<std::string> ids_of(const std::filesystem::path& path) {
  CollectedFindings findings;
  (void)open_native(posix_file_system(), path, findings);
  std::vector<std::string> ids;
  for (const Finding& finding : findings.all) ids.push_back(finding.id);
  return ids;
}

/// The id that a reader who must use the checkpoint is refused with; empty if it is not.
inline std::string refusal(const std::filesystem::path& path) {
  try {
    open_strict(path);
    return {};
  } catch (const Error& error) {
    return error.id();
  }
}

/// Reads every block and every guard, as a judge would. Returns what does not have its digest.
inline std::vector<std::string> damage_of(const Reader& reader) {
  std::vector<std::string> damage;
  const ExtentMap& map = reader.extents();
  for (const Extent& extent : map.extents()) {
    std::int64_t k = 0;
    for (const Digest recorded : map.blocks(extent)) {
      const std::int64_t at = k++ * ExtentMap::block_bytes;
      std::vector<std::byte> bytes(
          static_cast<std::size_t>(std::min(ExtentMap::block_bytes, extent.length_bytes - at)));
      reader.read_bytes(extent.file, extent.offset_bytes + at, bytes);
      if (digest_of(bytes) != recorded) damage.push_back(map.files()[extent.file].name);
    }
  }
  for (const Guard& guard : map.guards()) {
    Digest digest;
    for (const ByteRange& range : guard.ranges) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(range.end - range.begin));
      reader.read_bytes(guard.file, range.begin, bytes);
      digest = extend(digest, bytes);
    }
    if (digest != guard.expected) damage.push_back(guard.what);
  }
  return damage;
}

/// Every tensor, read whole and compared; empty if all are as written.
inline std::string what_differs(const Reader& reader) {
  const Catalog& catalog = reader.catalog();
  for (std::size_t tensor = 0; tensor < catalog.tensors.size(); ++tensor) {
    const TensorDesc& desc = catalog.tensors[tensor];
    std::vector<std::byte> bytes(static_cast<std::size_t>(num_bytes(desc)));
    reader.read(tensor, desc.extent, bytes, {});
    if (auto difference = what_differs(desc, desc.extent, bytes); !difference.empty()) {
      return difference;
    }
  }
  return {};
}

}  // namespace remesh::test
