#include "remesh/store/chunks.hpp"

#include <algorithm>

namespace remesh {
namespace {

std::int64_t width(DType dtype) { return bits(dtype) / 8; }

Index product(const Box& box, int from, int to) {
  Index result = 1;
  for (int dim = from; dim < to; ++dim) result *= box[dim].size();
  return result;
}

Index up(Index value, Index unit) { return value / unit + (value % unit != 0 ? 1 : 0); }

Index chunks_along(const Extent& extent) {
  return up(extent.box[extent.chunk_dim].size(), extent.chunk_size);
}

// The bytes behind one index of the dim that is cut.
std::int64_t row_bytes(DType dtype, const Extent& extent) {
  return product(extent.box, extent.chunk_dim + 1, extent.box.ndim()) * width(dtype);
}

}  // namespace

ChunkRule chunk_rule(DType dtype, const Box& box) {
  int dim = 0;
  while (dim + 1 < box.ndim() &&
         product(box, dim + 1, box.ndim()) > most_chunk_bytes / width(dtype)) {
    ++dim;
  }
  const std::int64_t row = product(box, dim + 1, box.ndim()) * width(dtype);
  const Index size = box[dim].size();
  const Index most = std::clamp<Index>(most_chunk_bytes / row, 1, size);
  return {dim, up(size, up(size, most))};
}

std::int64_t num_chunks(const Extent& extent) noexcept {
  return product(extent.box, 0, extent.chunk_dim) * chunks_along(extent);
}

Box chunk_box(const Extent& extent, std::int64_t k) noexcept {
  Box box = extent.box;
  const Index along = chunks_along(extent);
  const Range whole = extent.box[extent.chunk_dim];
  const Index begin = whole.begin + k % along * extent.chunk_size;
  box[extent.chunk_dim] = {begin, std::min(begin + extent.chunk_size, whole.end)};
  Index rest = k / along;
  for (int dim = extent.chunk_dim - 1; dim >= 0; --dim) {
    const Index at = extent.box[dim].begin + rest % extent.box[dim].size();
    box[dim] = {at, at + 1};
    rest /= extent.box[dim].size();
  }
  return box;
}

std::int64_t most_bytes_side_by_side(const ExtentMap& extents, std::size_t num_tensors) {
  std::int64_t most = 0;
  for (std::size_t tensor = 0; tensor < num_tensors; ++tensor) {
    std::int64_t bytes = 0;
    const auto pieces = extents.of(tensor);
    for (const std::uint32_t number : pieces) {
      const Extent& extent = extents.extents()[number];
      if (extent.copy != 0) break;
      const bool beside = extent.box.ndim() > 0 &&
                          extent.box[0].begin == extents.extents()[pieces.front()].box[0].begin;
      if (beside && is_chunked(extent)) bytes += most_chunk_bytes;
    }
    most = std::max(most, bytes);
  }
  return most;
}

ByteRange chunk_range(DType dtype, const Extent& extent, std::int64_t k) noexcept {
  const std::int64_t row = row_bytes(dtype, extent);
  const Index along = chunks_along(extent);
  const Index size = extent.box[extent.chunk_dim].size();
  const Index first = k % along * extent.chunk_size;
  const Index last = std::min(first + extent.chunk_size, size);
  const std::int64_t outer = k / along * size;
  return {(outer + first) * row, (outer + last) * row};
}

std::int64_t whole_chunk_bytes(DType dtype, const Extent& extent) noexcept {
  return extent.chunk_size * row_bytes(dtype, extent);
}

std::int64_t chunk_at(DType dtype, const Extent& extent, std::int64_t offset) noexcept {
  const Index row = offset / row_bytes(dtype, extent);
  const Index size = extent.box[extent.chunk_dim].size();
  return row / size * chunks_along(extent) + row % size / extent.chunk_size;
}

}  // namespace remesh
