#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "number_scan.hpp"
#include "remesh/schema/tensor.hpp"
#include "remesh/store/extents.hpp"
#include "remesh/store/reader.hpp"

namespace remesh::detail {

/// The number of the element that is `element` alone, in `box`, in row-major order: what
/// element_of() takes. Precondition: contains(box, element).
Index number_of(const Box& box, const Box& element) noexcept;

/// Where an element of a tensor lies.
struct ElementPlace {
  Box element;
  std::uint32_t file = 0;
  ByteRange bytes;  ///< its own, or those of the frame that holds it
};

/// Where copy 0 of an element lies. Precondition: some extent holds it.
ElementPlace place_of_element(const Reader& reader, std::size_t tensor, Index number);

/// Counts the numbers of each tensor, as its bytes pass in whatever runs and order: constant memory
/// for each tensor, and the same counts for any layout, threads and frames. Of several copies the
/// first is counted. An element that is cut by the border of two runs counts when it is whole; of a
/// dtype that is not counted (number_scan.hpp) nothing is.
///
/// What it hears may come from many threads; each byte should come once.
class Numbers {
 public:
  /// Both must outlive it.
  Numbers(std::span<const TensorDesc> tensors, const ExtentMap& extents);

  /// Bytes that lie in a file as they are.
  void add(std::uint32_t file, std::int64_t offset, std::span<const std::byte> bytes);

  /// Elements of a frame: `within` counts from the first byte of its chunk.
  void add_unpacked(std::int64_t number, std::int64_t within, std::span<const std::byte> bytes);

  /// Numbers of elements are those in the whole tensor, in row-major order.
  const NumberCounts& of(std::size_t tensor) const noexcept { return counts_[tensor]; }

 private:
  // An element of which not all bytes have come.
  struct Part {
    std::array<std::byte, 8> bytes{};
    std::int64_t known = 0;
  };

  void add_run(const Extent& extent, std::int64_t begin, std::span<const std::byte> bytes);
  void add_part(const Extent& extent, std::int64_t begin, std::span<const std::byte> bytes);
  void add_whole(const Extent& extent, Index first, std::span<const std::byte> bytes);

  std::span<const TensorDesc> tensors_;
  const ExtentMap& extents_;
  std::vector<NumberCounts> counts_;
  std::array<std::mutex, 16> mutexes_;  // each of some tensors
  std::mutex parts_mutex_;
  std::map<std::pair<const Extent*, Index>, Part> parts_;
};

}  // namespace remesh::detail
