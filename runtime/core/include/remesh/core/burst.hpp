#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "remesh/core/digest.hpp"

/// @file
/// What two digests of a damaged block say about the damage.
///
/// A CRC is linear: the XOR of the recorded and the found digest depends on the flipped bits and on
/// their distance to the end of the block, and not on what the block holds. Where the damage is
/// small, as that of a flipped bit in memory or of a broken lane of 16 bits, only one place and one
/// pattern explain the difference, and no copy is needed to undo it.
///
/// Bits are counted in the order in which they enter the CRC: bit 0 of a byte is its lowest, and
/// bit 7 of a byte comes right before bit 0 of the next.

namespace remesh {

/// Flipped bits that lie within 16 consecutive bits of a block.
struct Burst {
  std::int64_t first_bit = 0;  ///< of the block: bit first_bit % 8 of byte first_bit / 8
  std::uint16_t pattern = 0;   ///< bit i: whether bit first_bit + i is flipped; bit 0 is set

  friend bool operator==(const Burst&, const Burst&) = default;
};

/// The longest burst that locate_burst() looks for, from the first to the last flipped bit.
inline constexpr int most_burst_bits = 16;

/// The only burst of at most most_burst_bits that turns a block of the recorded digest into one of
/// the found digest; nothing if there is none, or more than one, or if the digests are equal.
///
/// In a block of up to 1 MiB no two bursts have the same difference (tried for every distance), so
/// that each burst is found there.
///
/// Damage of another kind is taken for a burst by chance alone: 8 * length_bytes * 2^15 bursts
/// share 2^64 differences, so that a block of 1 MiB gives a wrong answer with a chance of 2^-26
/// (1 in 67 million), a shorter one with less. The digest of a repaired block is the recorded one
/// either way.
///
/// Takes time in proportion to the length: some 20 ms for 1 MiB.
/// Precondition: 0 <= length_bytes < 2^60, and both digests are of that many bytes.
std::optional<Burst> locate_burst(Digest recorded, Digest found,
                                  std::int64_t length_bytes) noexcept;

/// "one flipped bit explains it: bit 3 of byte 4711", or what explains it else; bytes are counted
/// from the begin of the file in which the block lies at `block_offset`.
std::string describe(const Burst& burst, std::int64_t block_offset);

/// Flips the bits of the burst; twice is not at all. Precondition: they lie within the block.
void flip(const Burst& burst, std::span<std::byte> block) noexcept;

}  // namespace remesh
