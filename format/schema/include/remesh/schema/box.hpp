#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace remesh {

/// A count or position of elements. Never bytes: a byte count is named `..._bytes`.
using Index = std::int64_t;

/// The most dimensions a tensor may have. `rank` is never used for this: a rank is a position in a
/// mesh.
inline constexpr int max_ndim = 8;

/// The half-open range [begin, end) along one dimension. Empty when end <= begin.
struct Range {
  Index begin = 0;
  Index end = 0;

  Index size() const noexcept { return end > begin ? end - begin : 0; }
  friend auto operator<=>(const Range&, const Range&) = default;
};

/// A rectangular block of a tensor, in the index space of the whole tensor.
///
/// Every part of a tensor that remesh talks about is a box in these global coordinates, whoever
/// holds it and however its bytes are strided there. A box without dimensions is a scalar: it has
/// one element.
class Box {
 public:
  /// A scalar's box.
  Box() = default;

  /// `ndim` empty ranges at the origin. Throws Error(unsupported) if ndim > max_ndim.
  static Box of_ndim(std::size_t ndim);

  /// The box [0, size) along each dim. Throws as above.
  static Box whole(std::span<const Index> shape);

  /// Throws Error(unsupported) if there are more than `max_ndim` ranges.
  Box(std::initializer_list<Range> ranges);

  int ndim() const noexcept { return ndim_; }
  Range& operator[](int dim) noexcept { return ranges_[static_cast<std::size_t>(dim)]; }
  const Range& operator[](int dim) const noexcept { return ranges_[static_cast<std::size_t>(dim)]; }

  /// 1 for a scalar; 0 if any range is empty. Precondition: the product fits (parsers check it).
  Index num_elements() const noexcept;

  bool empty() const noexcept { return num_elements() == 0; }

  /// An arbitrary total order, for sorting.
  friend auto operator<=>(const Box&, const Box&) = default;

 private:
  int ndim_ = 0;
  std::array<Range, max_ndim> ranges_{};
};

/// The elements common to both boxes, or nothing if they share none.
/// Precondition: a.ndim() == b.ndim().
std::optional<Box> intersect(const Box& a, const Box& b);

/// `whole` without `hole`, as at most 2 * ndim disjoint boxes in a fixed order.
/// Precondition: `hole` lies inside `whole`.
std::vector<Box> subtract(const Box& whole, const Box& hole);

/// Whether every element of `inner` is in `outer`. An empty `inner` is inside anything.
/// Precondition: equal ndim.
bool contains(const Box& outer, const Box& inner);

/// The box of one element: that of the given number in `box`, in row-major order.
/// Precondition: 0 <= number < box.num_elements().
Box element_of(const Box& box, Index number);

/// "[0, 4) x [2, 8)", or "scalar".
std::string to_string(const Box& box);

}  // namespace remesh
