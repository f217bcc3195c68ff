#pragma once

#include <cstddef>
#include <cstdint>

#include "remesh/schema/tensor.hpp"
#include "remesh/store/extents.hpp"

/// @file
/// How a stored box is cut where its bytes are compressed. A chunk is one index of each dim before
/// `chunk_dim`, up to `chunk_size` indices of that one, and all of each dim behind it: so it is a
/// run of the box's row-major elements, and chunks in ascending number follow each other in it.

namespace remesh {

/// The most bytes of a chunk before it is compressed: those of a block.
inline constexpr std::int64_t most_chunk_bytes = ExtentMap::block_bytes;

/// A cut of a box.
struct ChunkRule {
  int dim = 0;
  Index size = 1;

  friend bool operator==(const ChunkRule&, const ChunkRule&) = default;
};

/// The cut that writers use: the first dim whose single index is small enough, in as few chunks as
/// most_chunk_bytes allows, and those as equal as can be (the last one has the fewest indices).
/// Precondition: the box has dims and elements; an element is whole bytes.
ChunkRule chunk_rule(DType dtype, const Box& box);

/// Precondition of all that follow: is_chunked(extent).
std::int64_t num_chunks(const Extent& extent) noexcept;

/// The elements of chunk k, as coordinates of the tensor.
Box chunk_box(const Extent& extent, std::int64_t k) noexcept;

/// The bytes of the extent's packed box that chunk k has, and all of them if it is whole: frames
/// have the bytes of a whole one, with zeros behind those of a short one.
ByteRange chunk_range(DType dtype, const Extent& extent, std::int64_t k) noexcept;
std::int64_t whole_chunk_bytes(DType dtype, const Extent& extent) noexcept;

/// The bytes of the chunks that hold one index of the outermost dim of a tensor, side by side in
/// its pieces, of the tensor where they are the most: who reads whole rows in order needs them
/// again.
/// Each counts as most_chunk_bytes, which is what a buffer has.
std::int64_t most_bytes_side_by_side(const ExtentMap& extents, std::size_t num_tensors);

/// The chunk that holds byte `offset` of the packed box.
std::int64_t chunk_at(DType dtype, const Extent& extent, std::int64_t offset) noexcept;

}  // namespace remesh
