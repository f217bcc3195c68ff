#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// @file
/// CRC-64/XZ (check value of "123456789": 995dc9bbdf1939fa), and the algebra that puts the CRC of a
/// whole together from the CRCs of its parts, in any order.
///
/// In the *pure* domain (initial value and final xor both 0) the CRC is linear over GF(2): the CRC
/// of a message is the XOR of the CRCs of its runs, each multiplied by x^(8 * bytes after the run)
/// modulo the generator; bytes that nobody added count as zero. The initial value and the final
/// xor of the XZ variant depend on the length alone and are applied once, by finish(). Any worker
/// may add any run at any time, and partial sums merge by XOR.

namespace remesh {

/// A CRC-64/XZ value. Equality of digests means equality of bytes only beside an equal length.
struct Digest {
  std::uint64_t value = 0;

  friend auto operator<=>(const Digest&, const Digest&) = default;
};

/// "crc64xz:" and 16 lower-case hexadecimal digits.
std::string to_string(Digest digest);

/// The inverse of to_string; nothing for any other text.
std::optional<Digest> parse_digest(std::string_view text) noexcept;

/// The digest of bytes that lie together.
Digest digest_of(std::span<const std::byte> bytes) noexcept;

/// Continues a digest: digest_of(a ++ b) == extend(digest_of(a), b). Starts from Digest{}.
Digest extend(Digest digest, std::span<const std::byte> bytes) noexcept;

namespace crc64 {

/// The CRC of a run in the pure domain.
std::uint64_t pure(std::span<const std::byte> bytes) noexcept;

/// The pure CRC of `count` bytes that are all 0xFF, in O(log count).
std::uint64_t pure_ones(std::int64_t count) noexcept;

/// x^(8 * count) modulo the generator: multiplying a pure CRC by it appends `count` zero bytes.
/// O(log count), and cheap: carry-less multiplications where the processor has them.
/// Precondition: count >= 0.
std::uint64_t power(std::int64_t count) noexcept;

/// The product of two polynomials modulo the generator.
std::uint64_t multiply(std::uint64_t a, std::uint64_t b) noexcept;

/// pure(A ++ B) from pure(A), pure(B) and B's length.
std::uint64_t concatenate(std::uint64_t a, std::uint64_t b, std::int64_t b_bytes) noexcept;

/// Turns the pure CRC of `total_bytes` bytes into its CRC-64/XZ. No bytes give 0.
Digest finish(std::uint64_t pure, std::int64_t total_bytes) noexcept;

}  // namespace crc64

}  // namespace remesh
