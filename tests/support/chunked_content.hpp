#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "numbered_tensor.hpp"
#include "remesh/store/chunks.hpp"
#include "remesh/store/reader.hpp"
#include "remesh/store/writer.hpp"

/// @file
/// Checkpoints whose frames are of both kinds, written and judged by code of the tests alone.

namespace remesh::test {

/// The packed bytes of a box. Tensors whose name begins with "smooth" compress well, others not at
/// all.
inline std::vector<std::byte> content_of_box(const TensorDesc& desc, const Box& box) {
  if (!desc.name.starts_with("smooth")) return numbered(desc, box);
  const int width = bits(desc.dtype) / 8;
  std::vector<std::byte> bytes;
  bytes.reserve(static_cast<std::size_t>(num_bytes(desc.dtype, box)));
  for_each_element(desc.extent, box, [&](Index place) {
    for (int byte = 0; byte < width; ++byte) {
      bytes.push_back(static_cast<std::byte>((place / 97) >> (8 * byte)));
    }
  });
  return bytes;
}

/// Writes all that a native writer asks for, chunk by chunk where there are chunks, and seals it.
inline void write_and_seal(Writer& writer) {
  const ExtentMap& map = writer.extents();
  std::vector<Digest> of_frames(map.all_frames().size());
  const Tap tap([](std::uint32_t, std::int64_t, Tap::Bytes) {},
                [&](std::int64_t number, const Frame&, Digest digest) {
                  of_frames[static_cast<std::size_t>(number)] = digest;
                },
                nullptr);
  const auto& tensors = writer.catalog().tensors;
  for (const Extent& extent : map.extents()) {
    if (extent.copy > 0) continue;
    const TensorDesc& desc = tensors[extent.tensor];
    const std::int64_t count = is_chunked(extent) ? num_chunks(extent) : 1;
    for (std::int64_t k = 0; k < count; ++k) {
      const Box box = is_chunked(extent) ? chunk_box(extent, k) : extent.box;
      writer.write(extent.tensor, box, content_of_box(desc, box), tap);
    }
  }

  std::vector<Digest> blocks;
  for (const Extent& extent : map.extents()) {
    if (is_chunked(extent)) {
      const auto mine = std::span(of_frames).subspan(static_cast<std::size_t>(extent.first_frame),
                                                     map.frames(extent).size());
      blocks.insert(blocks.end(), mine.begin(), mine.end());
      continue;
    }
    const std::vector<std::byte> bytes = content_of_box(tensors[extent.tensor], extent.box);
    for (std::size_t at = 0; at < bytes.size(); at += ExtentMap::block_bytes) {
      blocks.push_back(digest_of(std::span(bytes).subspan(
          at, std::min<std::size_t>(ExtentMap::block_bytes, bytes.size() - at))));
    }
  }
  std::vector<Digest> digests;
  digests.reserve(tensors.size());
  for (const TensorDesc& desc : tensors)
    digests.push_back(digest_of(content_of_box(desc, desc.extent)));
  writer.seal(digests, blocks);
}

/// The bytes of block k of an extent, in its file.
inline ByteRange place_of_block(const ExtentMap& map, const Extent& extent, std::int64_t k) {
  if (is_chunked(extent)) {
    const Frame& frame = map.frames(extent)[static_cast<std::size_t>(k)];
    return {frame.offset_bytes, frame.offset_bytes + frame.length_bytes};
  }
  const std::int64_t begin = k * ExtentMap::block_bytes;
  return {extent.offset_bytes + begin,
          extent.offset_bytes + std::min(begin + ExtentMap::block_bytes, extent.length_bytes)};
}

/// Reads every element, block, guard and side file. Says what is not as write_and_seal() wrote it;
/// empty if all is. Throws what the reader throws.
inline std::string damage_in(const Reader& reader) {
  const ExtentMap& map = reader.extents();
  const auto digest_in = [&](std::uint32_t file, ByteRange range, Digest before) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(range.end - range.begin));
    reader.read_bytes(file, range.begin, bytes);
    return extend(before, bytes);
  };
  for (const Extent& extent : map.extents()) {
    const auto recorded = map.blocks(extent);
    for (std::size_t k = 0; k < recorded.size(); ++k) {
      const ByteRange place = place_of_block(map, extent, static_cast<std::int64_t>(k));
      if (digest_in(extent.file, place, {}) != recorded[k]) {
        return "a block of " + map.files()[extent.file].name;
      }
    }
  }
  for (const Guard& guard : map.guards()) {
    Digest digest;
    for (const ByteRange& range : guard.ranges) digest = digest_in(guard.file, range, digest);
    if (digest != guard.expected) return guard.what + " of " + map.files()[guard.file].name;
  }
  const Catalog& catalog = reader.catalog();
  for (std::size_t tensor = 0; tensor < catalog.tensors.size(); ++tensor) {
    const TensorDesc& desc = catalog.tensors[tensor];
    std::vector<std::byte> bytes(static_cast<std::size_t>(num_bytes(desc)));
    reader.read(tensor, desc.extent, bytes, {});
    if (bytes != content_of_box(desc, desc.extent)) return "elements of " + desc.name;
  }
  for (const SideFile& side : catalog.side) (void)reader.side(side);
  return {};
}

}  // namespace remesh::test
