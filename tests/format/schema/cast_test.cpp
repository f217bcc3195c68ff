#include "remesh/schema/cast.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace remesh {
namespace {

constexpr std::array floats{DType::f64, DType::f32, DType::f16, DType::bf16};

std::size_t bytes_of(DType dtype) { return static_cast<std::size_t>(bits(dtype) / 8); }

std::vector<std::byte> packed(DType dtype, const std::vector<std::uint64_t>& values) {
  std::vector<std::byte> bytes(values.size() * bytes_of(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::memcpy(bytes.data() + i * bytes_of(dtype), &values[i], bytes_of(dtype));
  }
  return bytes;
}

std::uint64_t value_at(DType dtype, std::span<const std::byte> bytes, std::size_t i) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + i * bytes_of(dtype), bytes_of(dtype));
  return value;
}

struct Row {
  DType from;
  std::uint64_t in;
  DType to;
  std::uint64_t out;
  bool rounded;
  bool overflow;
};

// clang-format off
const std::vector<Row> rows{
    // 1.0, -2.0, 0, -0 everywhere
    {DType::f32,  0x3f800000,         DType::bf16, 0x3f80,             false, false},
    {DType::bf16, 0xc000,             DType::f32,  0xc0000000,         false, false},
    {DType::f32,  0x80000000,         DType::f16,  0x8000,             false, false},
    {DType::f64,  0x3ff0000000000000, DType::f16,  0x3c00,             false, false},
    {DType::f16,  0x3c00,             DType::f64,  0x3ff0000000000000, false, false},
    // 1 + 2^-8 is half way between two bf16: to the even one; a little more goes up, 3 * 2^-8 too
    {DType::f32,  0x3f808000,         DType::bf16, 0x3f80,             true,  false},
    {DType::f32,  0x3f808001,         DType::bf16, 0x3f81,             true,  false},
    {DType::f32,  0x3f818000,         DType::bf16, 0x3f82,             true,  false},
    // just above the tie, by less than an f32 has: once by way of f32 it would be a tie
    {DType::f64,  0x3ff0100000000001, DType::bf16, 0x3f81,             true,  false},
    {DType::f64,  0x3ff0100000000000, DType::bf16, 0x3f80,             true,  false},
    {DType::f64,  0x3ff0020000000001, DType::f16,  0x3c01,             true,  false},
    // f16: 65504 is the largest; 65519 still rounds to it, 65520 does not
    {DType::f32,  0x477fe000,         DType::f16,  0x7bff,             false, false},
    {DType::f32,  0x477fef00,         DType::f16,  0x7bff,             true,  false},
    {DType::f32,  0x477ff000,         DType::f16,  0x7c00,             true,  true},
    {DType::bf16, 0x7f7f,             DType::f16,  0x7c00,             true,  true},
    // f16 denormals: 2^-24 is the least, half of it ties to zero
    {DType::f32,  0x33800000,         DType::f16,  0x0001,             false, false},
    {DType::f32,  0x33000000,         DType::f16,  0x0000,             true,  false},
    {DType::f32,  0x33000001,         DType::f16,  0x0001,             true,  false},
    {DType::f32,  0x387fffff,         DType::f16,  0x0400,             true,  false},
    {DType::f16,  0x0001,             DType::f32,  0x33800000,         false, false},
    {DType::f16,  0x03ff,             DType::bf16, 0x3880,             true,  false},
    // the largest f32 is beyond bf16; the largest f64 beyond f32
    {DType::f32,  0x7f7fffff,         DType::bf16, 0x7f80,             true,  true},
    {DType::f64,  0x7fefffffffffffff, DType::f32,  0x7f800000,         true,  true},
    // infinities and NaNs stay what they are
    {DType::f32,  0xff800000,         DType::f16,  0xfc00,             false, false},
    {DType::f32,  0x7f800001,         DType::bf16, 0x7fc0,             false, false},
    {DType::f32,  0xffc12345,         DType::bf16, 0xffc1,             false, false},
    {DType::f16,  0x7e01,             DType::f32,  0x7fc02000,         false, false},
};
// clang-format on

using Cast = CastResult (*)(DType, std::span<const std::byte>, DType, std::span<std::byte>);

void expect_rows(Cast convert) {
  for (const Row& row : rows) {
    SCOPED_TRACE(::testing::Message() << to_string(row.from) << " " << std::hex << row.in);
    std::vector<std::byte> out(bytes_of(row.to));
    const CastResult result = convert(row.from, packed(row.from, {row.in}), row.to, out);
    EXPECT_EQ(value_at(row.to, out, 0), row.out) << std::hex << value_at(row.to, out, 0);
    EXPECT_EQ(result.rounded, row.rounded ? 1 : 0);
    EXPECT_EQ(result.overflow.has_value(), row.overflow);
  }
}

TEST(Cast, RoundsToNearestTiesToEven) { expect_rows(cast); }
TEST(CastByTheBook, RoundsToNearestTiesToEven) { expect_rows(cast_by_the_book); }

void expect_agreement(DType from, const std::vector<std::byte>& in) {
  const std::size_t count = in.size() / bytes_of(from);
  for (const DType to : floats) {
    if (to == from) continue;
    std::vector<std::byte> fast(count * bytes_of(to));
    std::vector<std::byte> slow(fast.size());
    const CastResult a = cast(from, in, to, fast);
    const CastResult b = cast_by_the_book(from, in, to, slow);
    EXPECT_EQ(a.rounded, b.rounded) << to_string(from) << " to " << to_string(to);
    EXPECT_EQ(a.overflow, b.overflow);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(value_at(to, fast, i), value_at(to, slow, i))
          << to_string(from) << " to " << to_string(to) << ": " << std::hex
          << value_at(from, in, i);
    }
  }
}

TEST(Cast, AgreesWithTheBookOnEvery16BitValue) {
  std::vector<std::uint64_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  expect_agreement(DType::f16, packed(DType::f16, all));
  expect_agreement(DType::bf16, packed(DType::bf16, all));
}

// Random bits, and values near the borders of the narrower kinds, where the mistakes are.
TEST(Cast, AgreesWithTheBookOnRandomValues) {
  constexpr std::uint64_t seed = 20;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 engine(seed);
  std::vector<std::uint64_t> wide;
  std::vector<std::uint64_t> narrow;
  for (int i = 0; i < 200'000; ++i) {
    wide.push_back(engine());
    narrow.push_back(engine() & 0xffffffffU);
    const double near = std::ldexp(1.0 + static_cast<double>(engine() % 4096) / 2048.0,
                                   static_cast<int>(engine() % 64) - 40);
    const auto bits_of_near = std::bit_cast<std::uint64_t>(near);
    wide.push_back(bits_of_near + engine() % 5 - 2);
    narrow.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(near)) + engine() % 5 - 2);
  }
  expect_agreement(DType::f64, packed(DType::f64, wide));
  expect_agreement(DType::f32, packed(DType::f32, narrow));
}

TEST(Cast, NamesTheFirstValueThatIsBeyond) {
  const auto in = packed(DType::f32, {0x3f800000, 0x47800000, 0x47800000});
  std::vector<std::byte> out(6);
  EXPECT_EQ(cast(DType::f32, in, DType::f16, out).overflow, 1);
}

TEST(CanCast, OnlyAmongFloatsOfTheStandardKinds) {
  for (const DType from : all_dtypes()) {
    for (const DType to : all_dtypes()) {
      const auto is_float = [](DType dtype) {
        return std::ranges::find(floats, dtype) != floats.end();
      };
      EXPECT_EQ(can_cast(from, to), is_float(from) && is_float(to));
    }
  }
}

}  // namespace
}  // namespace remesh
