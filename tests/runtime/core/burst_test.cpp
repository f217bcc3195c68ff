#include "remesh/core/burst.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "crc64_multiply.hpp"
#include "seeds.hpp"

namespace remesh {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

Bytes random_bytes(std::mt19937_64& engine, std::int64_t count) {
  Bytes drawn(static_cast<std::size_t>(count));
  for (std::byte& byte : drawn) byte = static_cast<std::byte>(engine());
  return drawn;
}

// By hand, so that nothing rests on flip().
void flip_bit(Bytes& block, std::int64_t bit) {
  const auto at = static_cast<std::size_t>(bit);
  block[at / 8] = static_cast<std::byte>(std::to_integer<unsigned>(block[at / 8]) ^ 1U << at % 8);
}

std::optional<Burst> difference_of(const Bytes& sound, const Bytes& damaged) {
  return locate_burst(digest_of(sound), digest_of(damaged), std::ssize(sound));
}

// Flips `pattern` from bit `first` on, looks for it, and repairs what was flipped.
void expect_found(const Bytes& sound, std::int64_t first, std::uint16_t pattern) {
  Bytes damaged = sound;
  for (int bit = 0; bit < most_burst_bits; ++bit) {
    if (((pattern >> bit) & 1) != 0) flip_bit(damaged, first + bit);
  }
  const auto burst = difference_of(sound, damaged);
  ASSERT_EQ(burst, (Burst{first, pattern})) << "bit " << first << ", pattern " << pattern;
  flip(*burst, damaged);
  EXPECT_EQ(damaged, sound);
}

// Its first bit is one, and it has no bits beyond the block.
std::uint16_t random_pattern(std::mt19937_64& engine, std::int64_t bits_left) {
  const auto any = static_cast<std::uint16_t>(engine() | 1);
  if (bits_left >= most_burst_bits) return any;
  return static_cast<std::uint16_t>(any & ((1U << bits_left) - 1));
}

TEST(Burst, EverySingleBitOfSmallBlocksIsFound) {
  std::mt19937_64 engine(1);
  for (std::int64_t length = 1; length <= 40; ++length) {
    const Bytes sound = random_bytes(engine, length);
    for (std::int64_t bit = 0; bit < 8 * length; ++bit) expect_found(sound, bit, 1);
  }
}

TEST(Burst, EveryPatternOfABlockOfOneByteIsFound) {
  const Bytes sound{std::byte{0x5a}};
  for (unsigned flips = 1; flips < 256; ++flips) {
    int first = 0;
    while (((flips >> first) & 1) == 0) ++first;
    expect_found(sound, first, static_cast<std::uint16_t>(flips >> first));
  }
}

TEST(Burst, RandomBurstsAreFoundAtEveryPlaceOfSmallBlocks) {
  for (unsigned seed = 0; seed < test::num_seeds(60); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 engine(seed);
    const auto length = static_cast<std::int64_t>(1 + engine() % 120);
    const Bytes sound = random_bytes(engine, length);
    for (std::int64_t bit = 0; bit < 8 * length; ++bit) {
      expect_found(sound, bit, random_pattern(engine, 8 * length - bit));
    }
  }
}

// The longest burst, and one bit more.
TEST(Burst, SixteenBitsAreFoundAndSeventeenAreNot) {
  std::mt19937_64 engine(2);
  const Bytes sound = random_bytes(engine, 100);
  for (std::int64_t bit = 0; bit + 17 <= 800; ++bit) {
    expect_found(sound, bit, 0x8001);
    Bytes damaged = sound;
    flip_bit(damaged, bit);
    flip_bit(damaged, bit + 16);
    EXPECT_EQ(difference_of(sound, damaged), std::nullopt) << "bit " << bit;
  }
}

TEST(Burst, IsFoundInAWholeBlock) {
  for (unsigned seed = 0; seed < test::num_seeds(6); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 engine(seed);
    const Bytes sound = random_bytes(engine, mebibyte);
    const auto bit = static_cast<std::int64_t>(engine() % (8 * mebibyte));
    expect_found(sound, bit, random_pattern(engine, 8 * mebibyte - bit));
  }
}

TEST(Burst, IsFoundInTheFirstAndInTheLastBitsOfAWholeBlock) {
  std::mt19937_64 engine(3);
  const Bytes sound = random_bytes(engine, mebibyte);
  expect_found(sound, 0, 0xffff);
  expect_found(sound, 8 * mebibyte - 16, 0xffff);
  expect_found(sound, 8 * mebibyte - 1, 1);
}

// The chance that one of these is taken for a burst is 2^-33 for 8 KiB; with these seeds none is.
TEST(Burst, TwoDistantFlipsAreNotExplained) {
  for (unsigned seed = 0; seed < test::num_seeds(100); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 engine(seed);
    const Bytes sound = random_bytes(engine, 8192);
    Bytes damaged = sound;
    const auto first = static_cast<std::int64_t>(engine() % 30000);
    flip_bit(damaged, first);
    flip_bit(damaged, first + 17 + static_cast<std::int64_t>(engine() % 30000));
    EXPECT_EQ(difference_of(sound, damaged), std::nullopt);
  }
}

TEST(Burst, AnotherBlockIsNotExplained) {
  for (unsigned seed = 0; seed < test::num_seeds(100); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 engine(seed);
    EXPECT_EQ(difference_of(random_bytes(engine, 8192), random_bytes(engine, 8192)), std::nullopt);
  }
}

// A burst that would begin before the block is none of this block.
TEST(Burst, ReachesNotBeyondTheBlock) {
  std::mt19937_64 engine(4);
  const Bytes sound = random_bytes(engine, 64);
  Bytes damaged = sound;
  for (const std::int64_t bit : {0, 7, 13}) flip_bit(damaged, bit);
  const Digest recorded = digest_of(sound);
  const Digest found = digest_of(damaged);
  EXPECT_EQ(locate_burst(recorded, found, 64), (Burst{0, 0x2081}));
  EXPECT_EQ(locate_burst(recorded, found, 63), std::nullopt);
}

// Whether some sum of these, but none of no terms, is zero.
bool dependent(std::array<std::uint64_t, most_burst_bits> rows) {
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (rows[row] == 0) return true;
    const std::uint64_t lowest = rows[row] & (~rows[row] + 1);
    for (std::size_t below = row + 1; below < rows.size(); ++below) {
      if ((rows[below] & lowest) != 0) rows[below] ^= rows[row];
    }
  }
  return false;
}

// Two bursts b and c that lie k bits apart have one difference where x^k c = b modulo the
// generator: where the powers x^k to x^(k + 15) have a sum that is no longer than a burst. One run
// covers blocks of 64 KiB; 16 times as many (REMESH_SOAK) those of 1 MiB.
TEST(Burst, NoTwoOfABlockHaveTheSameDifference) {
  const std::int64_t num_bits = std::int64_t{test::num_seeds(1)} * 65536 * 8;
  std::uint64_t power = crc64::one;
  for (int k = 0; k < most_burst_bits; ++k) power = crc64::times_x(power);
  std::array<std::uint64_t, most_burst_bits>
      beyond{};  // the parts of the last 16 that are too long
  for (std::int64_t k = most_burst_bits; k < num_bits; ++k, power = crc64::times_x(power)) {
    beyond[static_cast<std::size_t>(k % most_burst_bits)] = power << most_burst_bits;
    if (k < 2 * most_burst_bits - 1) continue;
    ASSERT_FALSE(dependent(beyond)) << "up to x^" << k;
  }
}

TEST(Burst, EqualDigestsAreNoBurst) {
  EXPECT_EQ(locate_burst(Digest{42}, Digest{42}, mebibyte), std::nullopt);
  EXPECT_EQ(locate_burst(Digest{}, Digest{}, 0), std::nullopt);
}

TEST(Burst, ABlockOfNoBytesHasNone) {
  EXPECT_EQ(locate_burst(Digest{1}, Digest{2}, 0), std::nullopt);
}

TEST(Burst, FlippedTwiceIsNotFlipped) {
  std::mt19937_64 engine(5);
  const Bytes sound = random_bytes(engine, 30);
  Bytes block = sound;
  flip({101, 0x8421}, block);
  EXPECT_NE(block, sound);
  flip({101, 0x8421}, block);
  EXPECT_EQ(block, sound);
}

TEST(Burst, IsDescribedByItsPlaceInTheFile) {
  EXPECT_EQ(describe({8 * 3 + 5, 0x1}, 1000), "one flipped bit explains it: bit 5 of byte 1003");
  EXPECT_EQ(describe({8 * 3 + 5, 0x8421}, 0),
            "flips among 16 bits explain it, from bit 5 of byte 3 on");
}

}  // namespace
}  // namespace remesh
