#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "remesh/core/dtype.hpp"
#include "remesh/schema/tensor.hpp"

namespace remesh {

/// Whether values of `from` can be turned into `to`: both are one of f64, f32, f16 and bf16.
bool can_cast(DType from, DType to) noexcept;

/// Whether a stored tensor can become the wanted one: the same shape, and the same dtype or one to
/// which it can be cast. Names are not compared.
bool can_become(const TensorDesc& stored, const TensorDesc& wanted) noexcept;

/// What came of turning some values into another dtype.
struct CastResult {
  std::int64_t rounded = 0;  ///< values that are not the same any more
  /// The first finite value (its number) that is beyond the largest of the new dtype.
  std::optional<std::int64_t> overflow;
};

/// Turns packed little-endian values into another dtype, rounding to nearest, ties to even.
/// Infinities stay, a NaN stays a NaN (its sign and first payload bits, made quiet), and what is
/// too small becomes the nearest denormal or zero. A finite value beyond the largest becomes an
/// infinity, and is reported.
/// Precondition: can_cast(from, to), and both spans hold equally many values.
CastResult cast(DType from, std::span<const std::byte> in, DType to, std::span<std::byte> out);

/// The same, one value after the other, by integer arithmetic on sign, exponent and significand
/// alone. It shares no code with cast(): each proves the other.
CastResult cast_by_the_book(DType from, std::span<const std::byte> in, DType to,
                            std::span<std::byte> out);

}  // namespace remesh
