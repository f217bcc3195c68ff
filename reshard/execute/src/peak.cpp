#include "remesh/execute/peak.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "panel_copy.hpp"
#include "remesh/schema/pieces.hpp"
#include "remesh/store/chunks.hpp"

namespace remesh {
namespace {

// Measured, rounded up (x86-64, glibc, libhdf5 1.10.8).
constexpr std::int64_t program_bytes = std::int64_t{22} << 20;
constexpr std::int64_t worker_bytes = std::int64_t{2} << 20;  // stack, scratch for reads
constexpr std::int64_t tensor_bytes = 1720;                   // catalogs, tallies, digests
constexpr std::int64_t header_bytes = 420;                    // of an HF source, for each tensor
constexpr std::int64_t source_piece_bytes = 400;
constexpr std::int64_t target_piece_bytes = 500;
// A panel and its number, in its lane and in the order; a block's CRC where it is added up, where
// it is taken from, and in the shard's index.
constexpr std::int64_t panel_entry_bytes = sizeof(detail::Panel) + 2 * sizeof(std::uint32_t);
constexpr std::int64_t block_entry_bytes = 48;
// libhdf5 keeps what it knows of a dataset while a shard is created, up to the size of its cache.
constexpr std::int64_t dataset_bytes = 10'000;
constexpr std::int64_t dataset_cache_bytes = std::int64_t{14} << 20;

std::int64_t name_bytes(const Catalog& catalog) {
  std::int64_t bytes = 0;
  for (const TensorDesc& tensor : catalog.tensors) bytes += std::ssize(tensor.name);
  return bytes;
}

bool any_cast(const Catalog& source, const Catalog& wanted) {
  std::unordered_map<std::string_view, DType> dtypes;
  for (const TensorDesc& tensor : source.tensors) dtypes.emplace(tensor.name, tensor.dtype);
  return std::ranges::any_of(wanted.tensors, [&](const TensorDesc& tensor) {
    const auto found = dtypes.find(tensor.name);
    return found != dtypes.end() && found->second != tensor.dtype;
  });
}

std::int64_t packaging_bytes(const Packaging& packaging) {
  std::int64_t bytes =
      std::ssize(packaging.index_text) + std::ssize(packaging.optimizer_index_text);
  for (const Packaging::File& file : packaging.files) bytes += std::ssize(file.verbatim_header);
  return bytes;
}

std::int64_t target_pieces(const Catalog& wanted, std::int64_t copies) {
  if (wanted.layout.placed().empty() || wanted.layout.mesh().num_ranks() == 1) {
    return std::ssize(wanted.tensors);
  }
  const Pieces lying(wanted.layout, wanted.tensors);
  std::int64_t pieces = 0;
  for (std::size_t tensor = 0; tensor < wanted.tensors.size(); ++tensor) {
    for (const HeldBox& held : lying.of(tensor)) {
      pieces += std::min(copies, static_cast<std::int64_t>(held.holders.size()));
    }
  }
  return pieces;
}

// Of a side file all bytes are held, one file at a time.
std::int64_t side_bytes(const Catalog& wanted) {
  std::int64_t most = 0;
  for (const SideFile& side : wanted.side) most = std::max(most, side.size_bytes);
  return most;
}

// What does not follow the limit.
std::int64_t fixed_bytes(const Catalog& source, const ExtentMap& stored, const Catalog& wanted,
                         std::int64_t pieces, int workers) {
  std::int64_t bytes = program_bytes + workers * worker_bytes;
  bytes += std::ssize(source.tensors) * tensor_bytes + 6 * name_bytes(source);
  bytes += std::ssize(stored.extents()) * source_piece_bytes + pieces * target_piece_bytes;
  if (source.format != "remesh") bytes += std::ssize(source.tensors) * header_bytes;
  if (wanted.format == "remesh") bytes += std::min(pieces * dataset_bytes, dataset_cache_bytes);
  return bytes + 4 * packaging_bytes(source.packaging) + side_bytes(wanted);
}

// What unpacks the source and packs the target.
std::int64_t packing_bytes(const ExtentMap& stored, const WriterOptions& options, int workers) {
  std::int64_t bytes = 0;
  if (!stored.all_frames().empty()) bytes += unpacking_bytes(workers);
  if (options.compress_level) {
    bytes +=
        compressing_bytes(*options.compress_level, workers) +
        std::int64_t{detail::window_for_each_worker} * workers * options.copies * most_chunk_bytes;
  }
  return bytes;
}

// What follows the limit.
struct Moved {
  std::int64_t bytes = 0;    // of all tensors that are wanted, in the wider dtype
  std::int64_t tensors = 0;  // of those
  std::int64_t largest = 0;  // what a buffer can be asked to hold
  int buffers = 0;
  std::int64_t unpacked = 0;  // side by side, in the source

  // Buffers, the list of all panels, and what is kept of the source beyond unpacking_bytes().
  std::int64_t memory(std::int64_t limit_bytes) const {
    const std::int64_t most = detail::panel_limit(limit_bytes, 1, buffers);
    const std::int64_t panels = bytes / std::max(most, std::int64_t{1}) + tensors;
    return buffers * std::min(largest, most) + panels * panel_entry_bytes +
           detail::kept_unpacked_bytes(unpacked, limit_bytes) - Reader::default_kept_bytes;
  }
};

Moved moved_of(const Catalog& source, const ExtentMap& stored, const Catalog& wanted, int workers) {
  Moved moved;
  moved.unpacked = most_bytes_side_by_side(stored, source.tensors.size());
  moved.buffers = (any_cast(source, wanted) ? 3 : 2) * workers;
  for (const auto* catalog : {&source, &wanted}) {
    std::int64_t bytes = 0;
    for (const TensorDesc& tensor : catalog->tensors) {
      moved.largest = std::max(moved.largest, num_bytes(tensor));
      bytes += num_bytes(tensor);
    }
    moved.bytes = std::max(moved.bytes, bytes);
  }
  moved.tensors = std::ssize(wanted.tensors);
  return moved;
}

// The least limit that holds what is fixed and what follows from itself: a quarter at most does.
std::int64_t least_limit(std::int64_t fixed, const Moved& moved) {
  std::int64_t low = std::int64_t{4} * moved.buffers * detail::least_panel_bytes;
  std::int64_t high = std::max(low, std::int64_t{1} << 20);
  const auto holds = [&](std::int64_t limit) { return fixed + moved.memory(limit) <= limit; };
  while (!holds(high)) high *= 2;
  if (holds(low)) return low;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (holds(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace

PeakMemory peak_memory(const Catalog& source, const ExtentMap& stored, const Catalog& wanted,
                       const WriterOptions& options, int workers, std::int64_t limit_bytes) {
  const std::int64_t copies = options.copies;
  const Moved moved = moved_of(source, stored, wanted, workers);
  PeakMemory memory;
  memory.pieces = target_pieces(wanted, copies);
  const std::int64_t fixed = fixed_bytes(source, stored, wanted, memory.pieces, workers) +
                             moved.bytes / ExtentMap::block_bytes * copies * block_entry_bytes +
                             packing_bytes(stored, options, workers);
  memory.peak_bytes = fixed + moved.memory(limit_bytes);
  memory.least_bytes = least_limit(fixed, moved);
  return memory;
}

}  // namespace remesh
