#include "remesh/core/digest.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <isa-l/crc64.h>

#include "crc64_multiply.hpp"

namespace remesh {
namespace {

constexpr std::string_view prefix = "crc64xz:";
constexpr std::size_t hex_digits = 16;

}  // namespace

// By hand: manifests have one for each tensor.
std::string to_string(Digest digest) {
  std::string text(prefix.size() + hex_digits, '0');
  std::ranges::copy(prefix, text.begin());
  for (std::size_t at = text.size(); digest.value != 0; digest.value >>= 4) {
    text[--at] = "0123456789abcdef"[digest.value & 0xf];
  }
  return text;
}

std::optional<Digest> parse_digest(std::string_view text) noexcept {
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  if (text.size() != hex_digits) return std::nullopt;

  Digest digest;
  for (const char c : text) {
    const bool is_letter = c >= 'a' && c <= 'f';
    if (!is_letter && (c < '0' || c > '9')) return std::nullopt;
    digest.value =
        digest.value << 4 | static_cast<std::uint64_t>(is_letter ? c - 'a' + 10 : c - '0');
  }
  return digest;
}

Digest digest_of(std::span<const std::byte> bytes) noexcept { return extend({}, bytes); }

// ISA-L inverts the value on its way in and on its way out, as zlib does: seed and result are
// CRC-64/XZ values.
Digest extend(Digest digest, std::span<const std::byte> bytes) noexcept {
  if (bytes.empty()) return digest;
  const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data());
  return {crc64_ecma_refl(digest.value, data, bytes.size())};
}

namespace crc64 {
namespace {

constexpr std::uint64_t all_ones = ~std::uint64_t{0};

// powers[k][digit] is x^(8 * digit * 256^k): what each byte of a count stands for.
using Powers = std::array<std::array<std::uint64_t, 256>, 8>;

Powers list_powers() noexcept {
  Powers powers{};
  std::uint64_t base = one >> 8;
  for (auto& row : powers) {
    std::uint64_t power = one;
    for (std::uint64_t& each : row) {
      each = power;
      power = multiply(power, base);
    }
    base = power;
  }
  return powers;
}

const Powers& powers() noexcept {
  static const Powers table = list_powers();
  return table;
}

}  // namespace

std::uint64_t pure(std::span<const std::byte> bytes) noexcept {
  return ~extend({all_ones}, bytes).value;
}

std::uint64_t pure_ones(std::int64_t count) noexcept {
  constexpr std::array<std::byte, 1> byte{std::byte{0xff}};
  std::uint64_t result = 0;
  std::uint64_t doubled = pure(byte);  // of 2^k bytes, and then as many again
  std::uint64_t shift = one >> 8;      // over those 2^k bytes
  for (auto rest = static_cast<std::uint64_t>(count); rest != 0; rest >>= 1) {
    if ((rest & 1) != 0) result = multiply(result, shift) ^ doubled;
    doubled ^= multiply(doubled, shift);
    shift = multiply(shift, shift);
  }
  return result;
}

std::uint64_t power(std::int64_t count) noexcept {
  std::uint64_t product = one;
  auto rest = static_cast<std::uint64_t>(count);
  for (const auto& row : powers()) {
    if (rest == 0) break;
    const std::uint64_t digit = rest & 0xff;
    if (digit != 0) product = product == one ? row[digit] : multiply(product, row[digit]);
    rest >>= 8;
  }
  return product;
}

std::uint64_t multiply(std::uint64_t a, std::uint64_t b) noexcept {
  static const bool carryless = has_carryless();
  return carryless ? multiply_carryless(a, b) : multiply_portable(a, b);
}

std::uint64_t concatenate(std::uint64_t a, std::uint64_t b, std::int64_t b_bytes) noexcept {
  return multiply(a, power(b_bytes)) ^ b;
}

Digest finish(std::uint64_t pure, std::int64_t total_bytes) noexcept {
  return {~(pure ^ multiply(all_ones, power(total_bytes)))};
}

}  // namespace crc64

}  // namespace remesh
