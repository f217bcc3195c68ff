#pragma once

#include <cstdint>

/// @file
/// The field arithmetic under CRC-64/XZ. A polynomial is *reflected*: bit 63 - k is the coefficient
/// of x^k, so that 1 << 63 stands for 1, and a byte's first bit on the wire is its lowest.

namespace remesh::crc64 {

/// The generator of ECMA-182 without its x^64.
inline constexpr std::uint64_t generator = 0xc96c5795d7870f42;

/// The polynomial 1.
inline constexpr std::uint64_t one = std::uint64_t{1} << 63;

/// a times x modulo the generator.
constexpr std::uint64_t times_x(std::uint64_t a) noexcept {
  return (a >> 1) ^ ((a & 1) != 0 ? generator : 0);
}

/// a times b modulo the generator, one bit after another: for processors without carry-less
/// multiplication, for constants, and to test the fast form against.
constexpr std::uint64_t multiply_portable(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t product = 0;
  for (; a != 0; a <<= 1) {
    if ((a & one) != 0) product ^= b;
    b = times_x(b);
  }
  return product;
}

/// Whether this processor can run multiply_carryless().
bool has_carryless() noexcept;

/// a times b modulo the generator, in three PCLMULQDQ. Precondition: has_carryless().
std::uint64_t multiply_carryless(std::uint64_t a, std::uint64_t b) noexcept;

}  // namespace remesh::crc64
