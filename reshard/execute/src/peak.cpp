#include "remesh/execute/peak.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "panel_copy.hpp"

namespace remesh {
namespace {

// Measured, rounded up (x86-64, glibc, libhdf5 1.10.8).
constexpr std::int64_t program_bytes = std::int64_t{22} << 20;
constexpr std::int64_t worker_bytes = std::int64_t{2} << 20;  // stack, scratch for reads
constexpr std::int64_t tensor_bytes = 1720;                   // catalogs, tallies, digests
constexpr std::int64_t header_bytes = 420;                    // of an HF source, for each tensor
constexpr std::int64_t source_piece_bytes = 400;
constexpr std::int64_t target_piece_bytes = 500;
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
  std::int64_t pieces = 0;
  for (std::size_t tensor = 0; tensor < wanted.tensors.size(); ++tensor) {
    for (const HeldBox& held : wanted.layout.boxes(tensor, wanted.tensors[tensor])) {
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

}  // namespace

PeakMemory peak_memory(const Catalog& source, const ExtentMap& stored, const Catalog& wanted,
                       std::int64_t copies, int workers, std::int64_t limit_bytes) {
  const std::int64_t buffers = (any_cast(source, wanted) ? 3 : 2) * std::int64_t{workers};
  std::int64_t largest = 0;
  for (const auto* catalog : {&source, &wanted}) {
    for (const TensorDesc& tensor : catalog->tensors) {
      largest = std::max(largest, num_bytes(tensor));
    }
  }
  largest = std::min(largest, detail::most_panel_bytes);

  PeakMemory memory;
  memory.pieces = target_pieces(wanted, copies);
  const std::int64_t fixed = fixed_bytes(source, stored, wanted, memory.pieces, workers);
  memory.peak_bytes =
      fixed +
      buffers * std::min(largest, detail::panel_limit(limit_bytes, 1, static_cast<int>(buffers)));
  // Either all buffers are as large as they can be, or they are a quarter of the limit.
  memory.least_bytes = std::max(4 * buffers * detail::least_panel_bytes,
                                std::min(fixed + buffers * largest, fixed + (fixed + 2) / 3));
  return memory;
}

}  // namespace remesh
