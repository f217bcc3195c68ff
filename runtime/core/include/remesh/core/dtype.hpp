#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace remesh {

/// The kind of one tensor element: every kind that safetensors knows. The values are stored on
/// disk: append, never renumber.
enum class DType : std::uint8_t {
  boolean = 1,  ///< one byte, 0 or 1
  f4 = 2,       ///< 4 bits, E2M1 (MXFP4)
  f6_e2m3 = 3,  ///< 6 bits
  f6_e3m2 = 4,  ///< 6 bits
  u8 = 5,
  i8 = 6,
  f8_e5m2 = 7,
  f8_e4m3 = 8,  ///< the "fn" kind: finite, with NaN
  f8_e8m0 = 9,  ///< a power of two, as MX block scales use it
  f8_e4m3fnuz = 10,
  f8_e5m2fnuz = 11,
  i16 = 12,
  u16 = 13,
  f16 = 14,
  bf16 = 15,
  i32 = 16,
  u32 = 17,
  f32 = 18,
  c64 = 19,  ///< two f32: real, imaginary
  f64 = 20,
  i64 = 21,
  u64 = 22,
};

/// Every dtype, in the order of their values. It is also the order in which safetensors ranks
/// them (smaller alignment first).
std::span<const DType> all_dtypes() noexcept;

/// The width of one element, in bits: a whole tensor's width is bytes, one element's may not be.
int bits(DType dtype) noexcept;

/// remesh's own name, for example "bf16", "f8_e4m3", "bool".
std::string_view to_string(DType dtype) noexcept;

/// The inverse of to_string.
std::optional<DType> parse_dtype(std::string_view name) noexcept;

}  // namespace remesh
