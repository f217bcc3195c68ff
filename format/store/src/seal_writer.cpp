#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "canonical_text.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/certificate.hpp"
#include "remesh/store/range_digest.hpp"
#include "remesh/store/seal.hpp"
#include "remesh/store/tally.hpp"
#include "seal_format.hpp"
#include "watched_file.hpp"

namespace remesh {
namespace {

using native::append_number;
using native::append_shape;
using native::append_text;

void append_digest(std::string& out, Digest digest) {
  out += '"';
  out += to_string(digest);
  out += '"';
}

void append_box(std::string& out, const Box& box) {
  out += '[';
  for (int dim = 0; dim < box.ndim(); ++dim) {
    out += dim > 0 ? ",[" : "[";
    append_number(out, box[dim].begin);
    out += ',';
    append_number(out, box[dim].end);
    out += ']';
  }
  out += ']';
}

void append_piece(std::string& out, const ExtentMap& map, const Extent& extent) {
  out += R"({"blocks":")";
  for (const Digest block : map.blocks(extent)) {
    fmt::format_to(std::back_inserter(out), "{:016x}", block.value);
  }
  out += R"(","box":)";
  append_box(out, extent.box);
  fmt::format_to(std::back_inserter(out), R"(,"copy":{},"file":{},"offset":{}}})", extent.copy,
                 extent.file, extent.offset_bytes);
}

void append_tensor(std::string& out, const Seal& seal, std::size_t tensor) {
  const TensorDesc& desc = seal.tensors[tensor];
  out += R"({"digest":)";
  append_digest(out, seal.digests[tensor]);
  out += R"(,"dtype":")";
  out += to_string(desc.dtype);
  out += R"(","name":)";
  append_text(out, desc.name);
  out += R"(,"pieces":[)";
  const auto pieces = seal.extents.of(tensor);
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    if (k > 0) out += ',';
    append_piece(out, seal.extents, seal.extents.extents()[pieces[k]]);
  }
  out += R"(],"shape":)";
  append_shape(out, desc.extent);
  out += '}';
}

void append_files(std::string& out, const Seal& seal) {
  const auto files = seal.extents.files();
  out += R"("files":[)";
  for (std::size_t file = 0; file < files.size(); ++file) {
    out += file > 0 ? R"(,{"name":)" : R"({"name":)";
    append_text(out, files[file].name);
    out += R"(,"rest":)";
    append_digest(out, seal.rest[file]);
    out += R"(,"size":)";
    append_number(out, files[file].size_bytes);
    out += '}';
  }
  out += ']';
}

void append_trees(std::string& out, const Seal& seal) {
  if (seal.trees.empty()) {
    out += R"("blake2b":null)";
    return;
  }
  out += R"("blake2b":[)";
  for (std::size_t file = 0; file < seal.trees.size(); ++file) {
    out += file > 0 ? ",\"" : "\"";
    out += to_string(seal.trees[file]);
    out += '"';
  }
  out += ']';
}

// The numbers of the files, in the order of their names.
std::vector<std::uint32_t> by_name(const ExtentMap& map) {
  std::vector<std::uint32_t> order(map.files().size());
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  std::ranges::sort(order, {}, [&](std::uint32_t file) { return map.files()[file].name; });
  return order;
}

OpenCheckpoint sorted_by_name(OpenCheckpoint checkpoint) {
  const ExtentMap& map = checkpoint.extents;
  const std::vector<std::uint32_t> order = by_name(map);
  std::vector<ExtentMap::FileEntry> entries;
  std::vector<FileSystem::Path> paths;
  std::vector<std::uint32_t> number_of(order.size());
  entries.reserve(order.size());
  paths.reserve(order.size());
  for (const std::uint32_t file : order) {
    number_of[file] = static_cast<std::uint32_t>(entries.size());
    entries.push_back(map.files()[file]);
    paths.push_back(checkpoint.paths[file]);
  }
  std::vector<Extent> extents(map.extents().begin(), map.extents().end());
  for (Extent& extent : extents) extent.file = number_of[extent.file];
  checkpoint.extents = ExtentMap(std::move(entries), std::move(extents));
  checkpoint.paths = std::move(paths);
  return checkpoint;
}

void refuse_chunks(const ExtentMap& map) {
  if (std::ranges::none_of(map.extents(), is_chunked)) return;
  throw Error(Errc::unsupported, "cannot seal a checkpoint whose tensors do not lie packed");
}

// Reads a checkpoint, and says what it read.
class Sealing {
 public:
  Sealing(const SweepContext& context, const FileSystem& files, OpenCheckpoint checkpoint)
      : context_(context),
        files_(files),
        paths_(checkpoint.paths),
        reader_(make_reader(files, std::move(checkpoint))),
        map_(reader_->extents()) {}

  Seal run(bool with_trees) {
    std::int64_t bytes = 0;
    for (const auto& file : map_.files()) bytes += file.size_bytes;
    context_.progress.begin("sealing", with_trees ? 2 * bytes : bytes);
    Seal seal;
    read_tensors(seal);
    read_rests(seal);
    if (with_trees) read_trees(seal);
    context_.progress.end();
    return seal;
  }

 private:
  void read_tensors(Seal& seal) {
    const Catalog& catalog = reader_->catalog();
    Tally tally(catalog.tensors, map_, /*with_blocks=*/true);
    sweep(context_, *reader_, all_extents(map_), tally.tap());
    seal.format = catalog.format;
    seal.tensors = catalog.tensors;
    seal.digests.reserve(catalog.tensors.size());
    for (std::size_t tensor = 0; tensor < catalog.tensors.size(); ++tensor) {
      const Tally::Sum sum = tally.sum(tensor);
      if (!sum.complete) {
        throw Error(Errc::incomplete,
                    fmt::format("cannot seal {}: its elements are not all there, or some twice",
                                to_string(catalog.tensors[tensor])),
                    "RM301");
      }
      seal.digests.push_back(sum.digest);
    }
    take_blocks(tally, seal);
  }

  void take_blocks(const Tally& tally, Seal& seal) const {
    std::vector<Extent> extents(map_.extents().begin(), map_.extents().end());
    std::vector<Digest> blocks;
    const auto count = [](std::int64_t sum, const Extent& extent) {
      return sum + num_blocks(extent);
    };
    blocks.reserve(static_cast<std::size_t>(
        std::accumulate(extents.begin(), extents.end(), std::int64_t{0}, count)));
    for (std::size_t number = 0; number < extents.size(); ++number) {
      extents[number].first_block = std::ssize(blocks);
      for (std::int64_t k = 0; k < num_blocks(extents[number]); ++k) {
        blocks.push_back(tally.block(number, k));
      }
    }
    seal.extents = ExtentMap({map_.files().begin(), map_.files().end()}, std::move(extents),
                             std::move(blocks));
  }

  void read_rests(Seal& seal) {
    const auto rests = native::rests_of(map_);
    const auto held =
        context_.budget.reserve(ExtentMap::block_bytes * context_.pool.size(), "read buffers");
    seal.rest.resize(rests.size());
    context_.pool.run(rests.size(), [&](std::size_t file, int) {
      seal.rest[file] = rest_of(static_cast<std::uint32_t>(file), rests[file]);
    });
  }

  Digest rest_of(std::uint32_t file, const std::vector<ByteRange>& ranges) const {
    const auto read = [&](std::int64_t at, std::span<std::byte> into) {
      context_.stop.check();
      reader_->read_bytes(file, at, into);
      context_.progress.advance(std::ssize(into));
      return true;
    };
    return digest_of_ranges(ranges, read).value_or(Digest{});
  }

  void read_trees(Seal& seal) {
    seal.trees.reserve(paths_.size());
    for (const FileSystem::Path& path : paths_) {
      seal.trees.push_back(tree_of(
          native::WatchedFile(files_.open(path), context_.progress, context_.stop), context_.pool));
    }
  }

  const SweepContext& context_;
  const FileSystem& files_;
  const std::vector<FileSystem::Path> paths_;
  const std::unique_ptr<Reader> reader_;
  const ExtentMap& map_;
};

}  // namespace

Seal make_seal(const SweepContext& context, const FileSystem& files, OpenCheckpoint checkpoint,
               bool with_trees) {
  refuse_chunks(checkpoint.extents);
  return Sealing(context, files, sorted_by_name(std::move(checkpoint))).run(with_trees);
}

std::string seal_text(const Seal& seal) {
  std::string out = "{";
  append_trees(out, seal);
  out += ',';
  append_files(out, seal);
  out += fmt::format(R"(,"format":"{}","format_version":{},"sealed":)", native::seal_format,
                     native::seal_version);
  append_text(out, seal.format);
  out += R"(,"tensors":[)";
  for (std::size_t tensor = 0; tensor < seal.tensors.size(); ++tensor) {
    if (tensor > 0) out += ',';
    append_tensor(out, seal, tensor);
  }
  out += ']';
  const Digest digest = digest_of(std::as_bytes(std::span(out)));
  out += certificate_end;
  out += to_string(digest);
  out += "\"}";
  if (std::ssize(out) > native::most_seal_bytes) {
    throw Error(Errc::unsupported,
                fmt::format("cannot write a seal of {} bytes: at most {} are read", out.size(),
                            native::most_seal_bytes));
  }
  return out;
}

}  // namespace remesh
