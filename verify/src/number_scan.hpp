#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "remesh/core/dtype.hpp"
#include "remesh/schema/box.hpp"

/// @file
/// What kind of numbers elements are, by their bits. All of it is counts, least and most: what
/// parts come to, taken together, does not depend on how they were cut or on their order.

namespace remesh::detail {

/// What was counted of some elements.
struct NumberCounts {
  static constexpr std::size_t num_bands = 8;
  static constexpr Index nowhere = std::numeric_limits<Index>::max();

  Index elements = 0;
  Index zeros = 0;  ///< of either sign
  Index nans = 0;
  Index infinities = 0;
  Index denormals = 0;
  Index negatives = 0;  ///< below zero: -0 and NaN are not
  /// Of floats, those that are finite and not zero, by the three highest bits of their exponent's
  /// field.
  std::array<Index, num_bands> bands{};
  int least_exponent = std::numeric_limits<int>::max();  ///< of the fields of the same elements
  int most_exponent = -1;
  Index first_not_finite = nowhere;  ///< its number among the elements
  Index first_negative = nowhere;

  friend bool operator==(const NumberCounts&, const NumberCounts&) = default;
};

/// Adds what was counted elsewhere; numbers of elements are compared as they are.
void add(NumberCounts& sum, const NumberCounts& part) noexcept;

/// Whether elements of this dtype are counted: integers, f64, f32, f16, bf16, f8_e4m3 and f8_e5m2.
/// Of integers there are zeros and negatives alone.
bool is_counted(DType dtype) noexcept;

/// Whether such elements are floats.
bool is_counted_float(DType dtype) noexcept;

/// Counts packed elements, numbered from 0. Preconditions: is_counted(dtype), and whole elements.
NumberCounts count_numbers(DType dtype, std::span<const std::byte> bytes) noexcept;

}  // namespace remesh::detail
