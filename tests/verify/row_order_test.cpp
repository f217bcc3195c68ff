#include "row_order.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "seeds.hpp"

namespace remesh {
namespace {

using detail::name_order;
using detail::OrderName;
using ::testing::HasSubstr;

using Slices = std::vector<std::uint64_t>;
using Order = std::vector<std::size_t>;  // which of the right ones stands at each place

Slices distinct(std::size_t count) {
  Slices slices(count);
  std::iota(slices.begin(), slices.end(), 1000);
  return slices;
}

Slices taken(const Slices& right, const Order& order) {
  Slices left;
  for (const std::size_t from : order) left.push_back(right[from]);
  return left;
}

std::string name(const Slices& right, const Order& order) {
  return name_order(taken(right, order), right, "rows").name;
}

std::string name(const Order& order) { return name(distinct(order.size()), order); }

Order counted(std::size_t size) {
  Order order(size);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Order inverse(const Order& order) {
  Order back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) back[order[i]] = i;
  return back;
}

// Head by head, row i of the first half and row i of the second beside each other.
Order interleaved(std::size_t size, std::size_t head) {
  Order order;
  for (std::size_t begin = 0; begin < size; begin += head) {
    for (std::size_t i = 0; i < head / 2; ++i) {
      order.push_back(begin + i);
      order.push_back(begin + head / 2 + i);
    }
  }
  return order;
}

// From [all q, all k, all v] to `groups` times [q, k, v].
Order grouped(std::size_t q, std::size_t kv, std::size_t groups) {
  Order order;
  for (std::size_t group = 0; group < groups; ++group) {
    for (std::size_t i = 0; i < q / groups; ++i) order.push_back(group * (q / groups) + i);
    for (const std::size_t begin : {q, q + kv}) {
      for (std::size_t i = 0; i < kv / groups; ++i) {
        order.push_back(begin + group * (kv / groups) + i);
      }
    }
  }
  return order;
}

TEST(RowOrder, RotaryOrdersOfEveryHeadSize) {
  for (const std::size_t head : {4U, 6U, 8U, 64U, 80U, 128U}) {
    const Order there = interleaved(3 * head, head);
    EXPECT_EQ(name(there), "interleave(" + std::to_string(head) + ")");
    EXPECT_EQ(name(inverse(there)),
              head == 4 ? "interleave(4)" : "deinterleave(" + std::to_string(head) + ")");
  }
}

TEST(RowOrder, RotaryOrdersOfSomeHeadsAlone) {
  Order order = interleaved(64, 16);
  for (std::size_t i = 32; i < 48; ++i) order[i] = i;
  const Slices right = distinct(64);
  const OrderName found = name_order(taken(right, order), right, "rows");
  EXPECT_EQ(found.name, "interleave(16)");
  EXPECT_THAT(found.words, HasSubstr("(in 3 of 4 places)"));
}

TEST(RowOrder, ARotaryOrderIsKnownAlsoWhereRowsAreAlike) {
  Slices right = distinct(64);
  std::fill(right.begin() + 8, right.begin() + 40, 0);  // padding
  EXPECT_EQ(name(right, interleaved(64, 16)), "interleave(16)");
  EXPECT_EQ(name(right, inverse(interleaved(64, 16))), "deinterleave(16)");
}

TEST(RowOrder, HalvesAndShifts) {
  Order halves = counted(24);
  std::rotate(halves.begin(), halves.begin() + 12, halves.end());
  EXPECT_EQ(name(halves), "exchange_halves(24)");
  Order of_heads = counted(24);
  for (std::size_t i = 0; i < 24; ++i) of_heads[i] = i / 8 * 8 + (i + 4) % 8;
  EXPECT_EQ(name(of_heads), "exchange_halves(8)");
  Order shifted = counted(24);
  std::rotate(shifted.begin(), shifted.begin() + 5, shifted.end());
  EXPECT_EQ(name(shifted), "rotate(5)");
  Order reversed = counted(24);
  std::ranges::reverse(reversed);
  EXPECT_EQ(name(reversed), "reverse");
}

TEST(RowOrder, GroupsOfQueriesKeysAndValues) {
  for (const std::size_t per_kv : {1U, 2U, 4U, 8U}) {
    for (const std::size_t kv_heads : {2U, 4U, 8U}) {
      constexpr std::size_t head = 4;
      const Order order = grouped(per_kv * kv_heads * head, kv_heads * head, kv_heads);
      const Slices right = distinct(order.size());
      const OrderName there = name_order(taken(right, order), right, "rows",
                                         {.kv_heads = static_cast<Index>(kv_heads)});
      EXPECT_EQ(there.id, "RM522");
      EXPECT_EQ(there.name, "group_qkv(1 -> " + std::to_string(kv_heads) + ")");
      EXPECT_THAT(there.words, HasSubstr("a KV head"));
      const OrderName back = name_order(taken(right, inverse(order)), right, "rows");
      EXPECT_EQ(back.id, "RM522");
      EXPECT_EQ(back.name, "group_qkv(" + std::to_string(kv_heads) + " -> 1)");
    }
  }
}

TEST(RowOrder, GroupsOfTwoMeshes) {
  const Order two = grouped(64, 16, 2);
  const Order four = grouped(64, 16, 4);
  const Slices whole = distinct(96);
  const OrderName found = name_order(taken(whole, four), taken(whole, two), "rows");
  EXPECT_EQ(found.name, "group_qkv(2 -> 4)");
  EXPECT_EQ(found.words,
            "as rows of queries, keys and values the left side has 4 groups of q, k, v (16 + 4 + 4 "
            "each), the right one 2 groups of q, k, v (32 + 8 + 8 each)");
}

TEST(RowOrder, BlocksThatAreTransposed) {
  Order order;  // gate and up of two ranks: [g0, u0, g1, u1] of [g0, g1, u0, u1]
  for (const std::size_t begin : {0U, 12U, 6U, 18U}) {
    for (std::size_t i = 0; i < 6; ++i) order.push_back(begin + i);
  }
  EXPECT_EQ(name(order), "transpose_blocks(2 x 2 of 6)");
}

TEST(RowOrder, BlocksInSomeOrder) {
  Order order;
  for (const std::size_t block : {3U, 0U, 4U, 1U, 2U}) {
    for (std::size_t i = 0; i < 4; ++i) order.push_back(block * 4 + i);
  }
  const Slices right = distinct(20);
  const OrderName found = name_order(taken(right, order), right, "columns");
  EXPECT_EQ(found.name, "blocks(4)");
  EXPECT_EQ(found.words, "blocks of 4 columns stand in the order 3, 0, 4, 1, 2");
}

TEST(RowOrder, TwoRows) {
  Order order = counted(10);
  std::swap(order[2], order[7]);
  EXPECT_EQ(name(order), "exchange(2, 7)");
}

TEST(RowOrder, AnyOtherOrderHasAnExample) {
  Order order = counted(7);
  std::rotate(order.begin() + 2, order.begin() + 3, order.begin() + 6);
  const Slices right = distinct(7);
  const OrderName found = name_order(taken(right, order), right, "rows");
  EXPECT_EQ(found.name, "reorder");
  EXPECT_EQ(
      found.words,
      "4 of 7 rows stand at another place, number 2 of the left side, the first of them, at 3 "
      "of the right one");
}

// Whatever is said must be so: a name that stands for one order is taken apart again.
TEST(RowOrder, ARandomOrderOfRandomRowsGetsNoFalseName) {
  for (unsigned seed = 0; seed < test::num_seeds(2000); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const std::size_t size = 5 + random() % 60;
    Slices right(size);
    for (auto& slice : right) slice = random() % (seed % 2 == 0 ? 1000000 : 4);
    Order order = counted(size);
    std::ranges::shuffle(order, random);
    const Slices left = taken(right, order);
    if (left == right) continue;
    const std::string found = name_order(left, right, "rows").name;
    if (seed % 2 == 0 && size > 12) {
      EXPECT_EQ(found, "reorder");
    }
    EXPECT_TRUE(detail::same_slices(left, right));
    Slices other = left;
    other[random() % size] += 1;
    EXPECT_FALSE(detail::same_slices(other, right));
  }
}

// Were each of a million candidates held against all rows, this would take minutes.
TEST(RowOrder, RowsThatAreNearlyAllAlikeAreNamedSoon) {
  Slices right(110880, 7);
  for (std::size_t i = 0; i < 40; ++i) right[i * 2003 + 11] = i;
  Order order = counted(right.size());
  for (std::size_t i = 0; i < 39; ++i) std::swap(order[i * 2003 + 11], order[i * 1999 + 5000]);
  EXPECT_EQ(name(right, order), "reorder");
}

TEST(RowOrder, LuckIsCountedInBits) {
  EXPECT_NEAR(detail::luck_in_bits(distinct(2)), 1, 1e-9) << "of 4 draws, 2 are both";
  EXPECT_NEAR(detail::luck_in_bits(Slices(100, 7)), 0, 1e-9) << "all alike";
  EXPECT_GT(detail::luck_in_bits(distinct(64)), 80);
  double sum = 0;
  for (std::size_t n = 1; n < 200; ++n) {
    sum += std::log2(static_cast<double>(n));
    EXPECT_NEAR(detail::log2_factorial(n), sum, 1e-6) << n;
  }
}

}  // namespace
}  // namespace remesh
