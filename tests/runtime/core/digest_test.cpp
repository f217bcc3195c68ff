#include "remesh/core/digest.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace remesh {
namespace {

using Bytes = std::vector<std::byte>;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// A source of test data that depends on its seed alone.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  /// In [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    const auto width = static_cast<std::uint64_t>(high - low) + 1;
    return low + static_cast<std::int64_t>(engine_() % width);
  }

  Bytes bytes(std::int64_t count) {
    Bytes result(static_cast<std::size_t>(count));
    for (std::byte& byte : result) byte = static_cast<std::byte>(engine_());
    return result;
  }

  std::mt19937_64& engine() { return engine_; }

 private:
  std::mt19937_64 engine_;
};

// CRC-64/XZ from its definition, bit after bit, in the order of the polynomial's powers (the code
// under test works in the reversed order): polynomial of ECMA-182, all ones in, each byte's lowest
// bit first, reversed and inverted on the way out.
std::uint64_t crc_by_definition(std::span<const std::byte> bytes) {
  std::uint64_t crc = ~std::uint64_t{0};
  for (const std::byte byte : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      const std::uint64_t in = (std::to_integer<std::uint64_t>(byte) >> bit) & 1;
      const bool divides = ((crc >> 63) ^ in) != 0;
      crc = (crc << 1) ^ (divides ? 0x42f0e1eba9ea3693 : 0);
    }
  }
  std::uint64_t reversed = 0;
  for (int bit = 0; bit < 64; ++bit) reversed |= ((crc >> bit) & 1) << (63 - bit);
  return ~reversed;
}

TEST(Digest, HasTheCheckValueOfCrc64Xz) {
  EXPECT_EQ(digest_of(bytes_of("123456789")).value, 0x995dc9bbdf1939fa);
}

TEST(Digest, OfNoBytesIsZero) {
  EXPECT_EQ(digest_of({}), Digest{});
  EXPECT_EQ(extend(Digest{42}, {}), Digest{42});
}

TEST(Digest, AgreesWithTheDefinition) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Bytes whole = random.bytes(random.between(0, 1500));
    const auto skip = static_cast<std::size_t>(random.between(0, 15));
    const auto bytes = std::span(whole).subspan(std::min(skip, whole.size()));  // any alignment
    EXPECT_EQ(digest_of(bytes).value, crc_by_definition(bytes));
  }
}

TEST(Digest, ExtendGoesOnWhereTheFirstPartEnded) {
  const Bytes whole = Random(1).bytes(600);
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    const auto [head, tail] = std::pair(std::span(whole).first(cut), std::span(whole).subspan(cut));
    EXPECT_EQ(extend(digest_of(head), tail), digest_of(whole)) << "cut at " << cut;
  }
}

TEST(Digest, IsWrittenWithItsKindAndSixteenDigits) {
  EXPECT_EQ(to_string(Digest{0x995dc9bbdf1939fa}), "crc64xz:995dc9bbdf1939fa");
  EXPECT_EQ(to_string(Digest{0xab}), "crc64xz:00000000000000ab");
  EXPECT_EQ(to_string(Digest{}), "crc64xz:0000000000000000");
}

TEST(Digest, ReadsWhatItWrites) {
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{0xab}, 0x0123456789abcdefU,
                                    0x995dc9bbdf1939faU, ~std::uint64_t{0}}) {
    EXPECT_EQ(parse_digest(to_string(Digest{value})), Digest{value});
  }
}

TEST(Digest, ReadsNothingElse) {
  for (const std::string_view text :
       {"", "crc64xz:", "995dc9bbdf1939fa", "crc64xz:995dc9bbdf1939f", "crc64xz:995dc9bbdf1939fa0",
        "crc64xz:995DC9BBDF1939FA", "CRC64XZ:995dc9bbdf1939fa", "crc64xz:995dc9bbdf1939fg",
        "crc64xz:0x5dc9bbdf1939fa", "crc64xz:-95dc9bbdf1939fa", "crc64xz: 95dc9bbdf1939fa",
        " crc64xz:995dc9bbdf1939fa", "crc64xz:995dc9bbdf1939fa ", "crc32:995dc9bbdf1939fa"}) {
    EXPECT_EQ(parse_digest(text), std::nullopt) << "'" << text << "'";
  }
}

struct Part {
  std::size_t offset;
  std::span<const std::byte> bytes;
};

// `whole` in parts that neither overlap nor leave a gap, some of them empty, in any order.
std::vector<Part> cut_at_random(std::span<const std::byte> whole, Random& random) {
  std::vector<std::size_t> cuts{0, whole.size()};
  for (auto more = random.between(0, 20); more > 0; --more) {
    cuts.push_back(
        static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(whole.size()))));
  }
  std::ranges::sort(cuts);
  std::vector<Part> parts;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    parts.push_back({cuts[i], whole.subspan(cuts[i], cuts[i + 1] - cuts[i])});
  }
  std::ranges::shuffle(parts, random.engine());
  return parts;
}

// What `part` contributes to the pure CRC of `total` bytes.
std::uint64_t contribution(const Part& part, std::size_t total) {
  const std::size_t after = total - part.offset - part.bytes.size();
  return crc64::multiply(crc64::pure(part.bytes), crc64::power(static_cast<std::int64_t>(after)));
}

// The property that the whole tool leans on: whoever reads whichever part, in whatever order.
TEST(Crc64, DoesNotDependOnHowTheBytesAreCut) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Bytes whole = random.bytes(random.between(0, 2000));
    std::array<std::uint64_t, 3> partial_sums{};
    for (const Part& part : cut_at_random(whole, random)) {
      partial_sums[static_cast<std::size_t>(random.between(0, 2))] ^=
          contribution(part, whole.size());
    }
    const std::uint64_t sum = partial_sums[0] ^ partial_sums[1] ^ partial_sums[2];
    const Digest digest = crc64::finish(sum, static_cast<std::int64_t>(whole.size()));
    EXPECT_EQ(digest, digest_of(whole));
    EXPECT_EQ(digest.value, crc_by_definition(whole));
  }
}

TEST(Crc64, BytesThatNobodyAddedCountAsZero) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Bytes whole = random.bytes(random.between(1, 500));
    std::uint64_t sum = 0;
    Bytes added(whole.size());
    for (const Part& part : cut_at_random(whole, random)) {
      if (random.between(0, 1) == 0) continue;
      sum ^= contribution(part, whole.size());
      std::ranges::copy(part.bytes, added.begin() + static_cast<std::ptrdiff_t>(part.offset));
    }
    EXPECT_EQ(crc64::finish(sum, static_cast<std::int64_t>(whole.size())), digest_of(added));
  }
}

TEST(Crc64, ConcatenateJoinsTwoRunsOfAnyLength) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Bytes whole = random.bytes(random.between(0, 1000));
    const auto size = static_cast<std::int64_t>(whole.size());
    const std::int64_t cut = random.between(0, size);
    const auto a = std::span(whole).first(static_cast<std::size_t>(cut));
    const auto b = std::span(whole).subspan(static_cast<std::size_t>(cut));
    EXPECT_EQ(crc64::concatenate(crc64::pure(a), crc64::pure(b), size - cut), crc64::pure(whole));
  }
}

// How rows of one width and one pitch are added: one constant, no power for each row.
TEST(Crc64, StridedRowsAreAddedWithOneConstant) {
  const std::int64_t rows = 37;
  const std::int64_t pitch = 96;
  const std::int64_t width = 40;
  const std::int64_t first = 13;
  const Bytes data = Random(7).bytes(rows * pitch);
  Bytes wanted(data.size());
  std::uint64_t sum = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto at = static_cast<std::size_t>(row * pitch + first);
    const auto run = std::span(data).subspan(at, static_cast<std::size_t>(width));
    std::ranges::copy(run, wanted.begin() + static_cast<std::ptrdiff_t>(at));
    sum = crc64::multiply(sum, crc64::power(pitch)) ^ crc64::pure(run);
  }
  sum = crc64::multiply(sum, crc64::power(pitch - first - width));
  EXPECT_EQ(crc64::finish(sum, rows * pitch), digest_of(wanted));
}

TEST(Crc64, MultiplyingByAPowerAppendsZeroBytes) {
  const Bytes data = Random(3).bytes(50);
  Bytes longer = data;
  for (std::int64_t count = 0; count <= 1100; ++count) {
    EXPECT_EQ(crc64::multiply(crc64::pure(data), crc64::power(count)), crc64::pure(longer))
        << count;
    longer.push_back(std::byte{0});
  }
}

// Lengths that no buffer reaches are tied to those that one does: x^a * x^b == x^(a + b).
TEST(Crc64, PowersOfAnyCountMultiply) {
  constexpr std::int64_t most = std::int64_t{1} << 62;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const std::int64_t a = random.between(0, most - 1) >> random.between(0, 61);
    const std::int64_t b = random.between(0, most) >> random.between(0, 61);
    EXPECT_EQ(crc64::multiply(crc64::power(a), crc64::power(b)), crc64::power(a + b));
  }
  EXPECT_EQ(crc64::multiply(crc64::power(most), crc64::power(most - 1)),
            crc64::power(most + (most - 1)));
}

TEST(Crc64, PureOnesIsTheCrcOfThatManyBytesOfOnes) {
  Bytes ones;
  for (std::int64_t count = 0; count <= 1100; ++count) {
    EXPECT_EQ(crc64::pure_ones(count), crc64::pure(ones)) << count;
    ones.push_back(std::byte{0xff});
  }
}

TEST(Crc64, PureOnesOfAnyCountConcatenate) {
  constexpr std::int64_t most = std::int64_t{1} << 62;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const std::int64_t a = random.between(0, most - 1) >> random.between(0, 61);
    const std::int64_t b = random.between(0, most) >> random.between(0, 61);
    EXPECT_EQ(crc64::concatenate(crc64::pure_ones(a), crc64::pure_ones(b), b),
              crc64::pure_ones(a + b));
  }
}

TEST(Crc64, FinishOfNoBytesIsZero) {
  EXPECT_EQ(crc64::pure({}), 0U);
  EXPECT_EQ(crc64::finish(0, 0), Digest{});
}

}  // namespace
}  // namespace remesh
