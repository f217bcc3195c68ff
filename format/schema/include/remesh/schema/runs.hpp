#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "remesh/schema/box.hpp"
#include "remesh/schema/tensor.hpp"

/// @file
/// Between elements and bytes. A tensor's logical bytes are its elements, row-major, little-endian,
/// without padding; a box's *packed* bytes are its elements in the same order.
///
/// Elements narrower than a byte are packed low bits first. They take part only through
/// `byte_view`: the same bytes seen as a tensor of u8, in which every border is a whole byte.

namespace remesh {

/// A tensor and one box of it, measured so that an element is a whole number of bytes.
struct ByteView {
  Box extent;
  Box box;
  std::int64_t element_bytes = 1;
};

/// The box of `tensor` with whole-byte elements: unchanged for dtypes of 8 bits and more. A
/// sub-byte tensor turns into u8 with its last dim scaled, or, if its rows are no whole bytes, into
/// one dim of bytes, of which only the whole is a legal box. Throws Error(unsupported) if a border
/// of the box is no whole byte; names tensor, box and bits.
ByteView byte_view(const TensorDesc& tensor, const Box& box);

/// Consecutive bytes that lie together both in the whole tensor and in a packed box.
struct Run {
  std::int64_t tensor_bytes = 0;  ///< offset in the tensor's logical bytes
  std::int64_t packed_bytes = 0;  ///< offset in the box's packed bytes
  std::int64_t length_bytes = 0;

  friend bool operator==(const Run&, const Run&) = default;
};

/// Calls `visit` for each maximal run of packed bytes [begin, end) of view.box, in order.
/// Precondition: 0 <= begin <= end <= the box's packed bytes.
void for_each_run(const ByteView& view, std::int64_t begin, std::int64_t end,
                  const std::function<void(const Run&)>& visit);

/// The offset of `inner`'s first byte among the packed bytes of `outer`, if all of inner's packed
/// bytes lie together there; otherwise nothing. Both boxes have elements of `element_bytes` and lie
/// in one tensor. Precondition: contains(outer, inner).
std::optional<std::int64_t> contiguous_in(const Box& outer, const Box& inner,
                                          std::int64_t element_bytes);

/// Copies the elements of `part` from the packed bytes of the box `from_box` to the packed bytes of
/// the box `to_box`. Preconditions: both boxes contain `part`; the pointers hold those boxes.
void copy_box(const Box& part, const Box& from_box, const std::byte* from, const Box& to_box,
              std::byte* to, std::int64_t element_bytes);

}  // namespace remesh
