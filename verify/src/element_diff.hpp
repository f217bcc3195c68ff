#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "elements.hpp"
#include "remesh/verify/diff.hpp"

namespace remesh::detail {

/// What was counted of some pairs of elements. All of it is exact: the order in which parts are
/// added means nothing.
struct PairCounts {
  static constexpr Index nowhere = std::numeric_limits<Index>::max();
  static constexpr std::size_t num_distances = 65;

  Index differing = 0;
  Index beyond = 0;
  Index nans = 0;
  Index infinite = 0;
  std::uint64_t most_distance = 0;
  double most_absolute = 0;
  std::array<Index, num_distances> by_distance{};  ///< by the bits that the distance takes
  Index first = nowhere;                           ///< the number of the first that differs
  std::uint64_t first_left = 0;
  std::uint64_t first_right = 0;
};

void add(PairCounts& sum, const PairCounts& part) noexcept;

/// Sums over pairs of finite elements. They are rounded, so the order in which parts are added is
/// kept. The range of long double keeps squares of f64 from overflowing.
struct PairSums {
  Index finite = 0;
  long double absolute = 0;  ///< of |left - right|
  long double squared_difference = 0;
  long double left_squared = 0;
  long double right_squared = 0;
  long double product = 0;
};

void add(PairSums& sum, const PairSums& part) noexcept;

/// Compares elements of two dtypes. Precondition: is_comparable(left, right).
class ElementDiff {
 public:
  ElementDiff(DType left, DType right, const Tolerance& tolerance);

  /// Whether there is anything to be summed.
  bool has_sums() const noexcept { return reading_ != Reading::bits; }

  /// As many packed elements of each side; the first has the number `first`. Elements are whole
  /// bytes together. The result is a function of these elements, and of where they begin.
  void compare(std::span<const std::byte> left, std::span<const std::byte> right, Index first,
               PairCounts& counts, PairSums& sums) const;

  /// What compare() adds to the sums, of elements that are the same on both sides.
  void add_equal(std::span<const std::byte> both, PairSums& sums) const;

 private:
  struct Sides;
  struct Floats;

  void compare_bits(std::span<const std::byte> left, std::span<const std::byte> right, Index first,
                    PairCounts& counts) const;
  bool compare_floats(std::span<const std::byte> left, std::span<const std::byte> right,
                      Index first, PairCounts& counts, PairSums& sums) const;
  static void count_floats(const Floats& floats, Index first, PairCounts& counts);
  void count(const Sides& sides, Index first, PairCounts& counts) const;
  void count_finite(const Sides& sides, Index first, PairCounts& counts) const;
  void count_one(const Sides& sides, std::size_t i, Index number, PairCounts& counts) const;
  bool is_within(double left, double right, std::uint64_t steps) const noexcept;

  DType left_;
  DType right_;
  DType common_;
  Reading reading_;
  bool are_wide_;  // f32, or its upper half
  Tolerance tolerance_;
};

}  // namespace remesh::detail
