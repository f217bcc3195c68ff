#include "remesh/core/burst.hpp"

#include <bit>

#include <fmt/format.h>

#include "crc64_multiply.hpp"

namespace remesh {
namespace {

// The generator with its x^64, divided by x: what is left of its x^0 is the constant's lowest bit.
constexpr std::uint64_t generator_over_x = (crc64::generator << 1) | 1;

// a divided by x modulo the generator. Without a branch, which nothing could predict.
constexpr std::uint64_t over_x(std::uint64_t a) noexcept {
  return (a << 1) ^ ((std::uint64_t{0} - (a >> 63)) & generator_over_x);
}

static_assert(over_x(crc64::times_x(crc64::generator)) == crc64::generator);
static_assert(crc64::times_x(over_x(crc64::generator)) == crc64::generator);

// Of a burst that ends in the last bit of a block only these powers are left: x^0 to x^15.
constexpr int burst_shift = 64 - most_burst_bits;
constexpr std::uint64_t beyond_burst = (std::uint64_t{1} << burst_shift) - 1;

// A CRC counts x^64 times the message.
constexpr std::uint64_t without_x64(std::uint64_t difference) noexcept {
  for (int power = 0; power < 64; ++power) difference = over_x(difference);
  return difference;
}

// A burst whose last bit has `behind` bits behind it. The highest power is its first bit.
Burst burst_of(std::uint64_t polynomial, std::int64_t behind, std::int64_t num_bits) noexcept {
  const auto window = static_cast<std::uint16_t>(polynomial >> burst_shift);
  const int unused = std::countr_zero(window);
  return {num_bits - behind - (most_burst_bits - unused),
          static_cast<std::uint16_t>(window >> unused)};
}

}  // namespace

std::optional<Burst> locate_burst(Digest recorded, Digest found,
                                  std::int64_t length_bytes) noexcept {
  if (recorded == found) return std::nullopt;
  const std::int64_t num_bits = 8 * length_bytes;
  std::optional<Burst> only;
  // The difference is the burst's polynomial times x^(64 + behind).
  std::uint64_t polynomial = without_x64(recorded.value ^ found.value);
  for (std::int64_t behind = 0; behind < num_bits; ++behind, polynomial = over_x(polynomial)) {
    // Without its x^0 it is the polynomial of a burst that ends further on, and has been met.
    const bool is_burst = (polynomial & beyond_burst) == 0 && (polynomial & crc64::one) != 0;
    if (!is_burst) continue;
    const Burst burst = burst_of(polynomial, behind, num_bits);
    if (burst.first_bit < 0) continue;
    if (only) return std::nullopt;
    only = burst;
  }
  return only;
}

void flip(const Burst& burst, std::span<std::byte> block) noexcept {
  for (int bit = 0; bit < most_burst_bits; ++bit) {
    if (((burst.pattern >> bit) & 1) == 0) continue;
    const auto at = static_cast<std::size_t>(burst.first_bit + bit);
    block[at / 8] ^= std::byte{1} << (at % 8);
  }
}

std::string describe(const Burst& burst, std::int64_t block_offset) {
  const std::int64_t byte = block_offset + burst.first_bit / 8;
  const std::int64_t bit = burst.first_bit % 8;
  const int width = std::bit_width(burst.pattern);
  if (width == 1) return fmt::format("one flipped bit explains it: bit {} of byte {}", bit, byte);
  return fmt::format("flips among {} bits explain it, from bit {} of byte {} on", width, bit, byte);
}

}  // namespace remesh
