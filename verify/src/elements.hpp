#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "remesh/core/dtype.hpp"
#include "remesh/schema/box.hpp"

/// @file
/// Elements as numbers, exactly, and how far two of them are apart.

namespace remesh::detail {

/// How the bits of elements are to be read.
enum class Reading {
  floats,
  integers,  ///< bool too: 0 and 1
  bits,      ///< narrower than a byte, and complex: equal or not
};

Reading reading_of(DType dtype) noexcept;

/// Whether elements of both can be compared: of one dtype, or floats.
bool is_comparable(DType left, DType right) noexcept;

enum class Kind : std::uint8_t { finite, infinite, nan };

/// Some elements of one dtype, side by side.
struct Elements {
  static constexpr std::size_t most = 512;

  std::size_t count = 0;
  std::array<std::uint64_t, most> bits;
  /// Their values; those that a double does not hold (large integers) are rounded. 0 of what is not
  /// finite.
  std::array<double, most> values;
  /// Neighbouring numbers of the dtype have neighbouring orders, and those of -0 and +0 are one.
  std::array<std::int64_t, most> orders;
  std::array<Kind, most> kinds;
};

/// Reads packed elements. Preconditions: reading_of(dtype) is not `bits`; whole elements, at most
/// Elements::most.
void decode(DType dtype, std::span<const std::byte> bytes, Elements& into) noexcept;

/// Gives floats the orders that they have in another dtype. Those of what is not finite tell its
/// sign alone, and of NaN nothing.
/// Precondition: `as` is f32 or f64, and holds all of them exactly.
void reorder(DType as, Elements& elements) noexcept;

/// The dtype in whose ulps floats of two dtypes are told apart: their own where it is one;
/// otherwise f32, or f64 if one of them is f64.
DType common_float(DType left, DType right) noexcept;

/// How many steps lie between two orders: ulps of floats, the difference of integers.
inline std::uint64_t distance(std::int64_t a, std::int64_t b) noexcept {
  const auto wide_a = static_cast<std::uint64_t>(a);
  const auto wide_b = static_cast<std::uint64_t>(b);
  return a > b ? wide_a - wide_b : wide_b - wide_a;
}

/// The bits of one packed element, whatever its width. Precondition: it lies in `bytes`.
std::uint64_t bits_at(DType dtype, std::span<const std::byte> bytes, std::size_t number) noexcept;

/// "0.0078125", "nan", "-3": the shortest text that is that value. Empty where bits are all that is
/// known.
std::string value_text(DType dtype, std::uint64_t bits);

/// "0x3f80": all digits that the dtype has.
std::string bits_text(DType dtype, std::uint64_t bits);

/// "1.5 (0x3fc0)".
std::string element_text(DType dtype, std::uint64_t bits);

/// How far two elements are apart, for people: "1 ulp", "3", "one is no finite number"; empty where
/// bits are all that is known. Precondition: reading_of both is one.
std::string distance_text(DType dtype, std::uint64_t left, std::uint64_t right);

/// "[17]", "[3, 5]": where an element stands. "[]" of a scalar.
std::string index_text(const Box& element);

}  // namespace remesh::detail
