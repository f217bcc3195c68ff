#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job.hpp"
#include "rearrangement.hpp"
#include "remesh/schema/cast.hpp"
#include "remesh/store/memory_store.hpp"
#include "seeds.hpp"
#include "slice_hashes.hpp"

// Single tensors, of forms that the trained models do not have, on one rank against two.

namespace remesh {
namespace {

using test::Bytes;
using test::counted;
using test::finds;
using test::Order;
using test::says;
using test::transposed;
using test::with_columns;
using test::with_rows;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

struct Named {
  TensorDesc desc;
  Bytes bytes;
};

// On one rank, or each tensor's rows divided over two.
std::unique_ptr<MemoryStore> stored(const std::vector<Named>& tensors, Index ranks) {
  Catalog catalog;
  for (const Named& tensor : tensors) catalog.tensors.push_back(tensor.desc);
  Split rows;
  rows.over = {"tp"};
  catalog.layout =
      Layout(Mesh({{"tp", ranks}}), {{{rows}, {}}}, std::vector<Placed>(tensors.size()), {});
  auto store = std::make_unique<MemoryStore>(catalog);
  for (const Extent& extent : store->extents().extents()) {
    const Named& tensor = tensors[extent.tensor];
    const auto row = tensor.bytes.size() / static_cast<std::size_t>(tensor.desc.extent[0].size());
    std::memcpy(store->bytes(extent.rank).data() + extent.offset_bytes,
                tensor.bytes.data() + static_cast<std::size_t>(extent.box[0].begin) * row,
                static_cast<std::size_t>(extent.length_bytes));
  }
  return store;
}

std::vector<Finding> compared(const std::vector<Named>& left, const std::vector<Named>& right) {
  test::Machine machine(3);
  const auto ours = stored(left, 1);
  const auto theirs = stored(right, 2);
  const Opener open_left = [&](Findings&) { return ours->reader(); };
  const Opener open_right = [&](Findings&) { return theirs->reader(); };
  return verify_against(machine.judge(), open_left, open_right, Level::full).findings;
}

Bytes random_bytes(std::size_t size, std::mt19937& random) {
  Bytes bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST(RearrangedTensors, FusedQueriesKeysAndValues) {
  std::mt19937 random(1);
  const TensorDesc desc{"h.0.attn.qkv.weight", DType::f32, Box{{0, 96}, {0, 10}}};
  const Bytes grouped = random_bytes(96 * 40, random);
  Order order;  // two KV heads of 12 rows, each with 2 heads of queries
  for (const std::size_t begin : {0U, 48U, 24U, 72U}) {
    const std::size_t rows = begin == 0 || begin == 48 ? 24 : 12;
    for (std::size_t i = 0; i < rows; ++i) order.push_back(begin + i);
  }
  for (const std::size_t begin : {36U, 84U}) {
    for (std::size_t i = 0; i < 12; ++i) order.push_back(begin + i);
  }
  // [q0, q1, k0, k1, v0, v1] of [q0, k0, v0, q1, k1, v1]
  const auto findings = compared({{desc, with_rows(grouped, order)}}, {{desc, grouped}});
  EXPECT_THAT(findings, ElementsAre(finds("RM522", desc.name, "group_qkv(2 -> 1)")));
}

TEST(RearrangedTensors, HalvesOfAFusedTensor) {
  std::mt19937 random(2);
  const TensorDesc desc{"mlp.gate_up.weight", DType::f16, Box{{0, 40}, {0, 7}}};
  const Bytes bytes = random_bytes(40 * 14, random);
  Order halves = counted(40);
  std::rotate(halves.begin(), halves.begin() + 20, halves.end());
  EXPECT_THAT(compared({{desc, with_rows(bytes, halves)}}, {{desc, bytes}}),
              ElementsAre(finds("RM521", desc.name, "exchange_halves(40)")));
}

TEST(RearrangedTensors, TransposesOfOtherShapes) {
  std::mt19937 random(3);
  const TensorDesc tall{"w", DType::bf16, Box{{0, 6}, {0, 4}}};
  const TensorDesc flat{"w", DType::bf16, Box{{0, 4}, {0, 6}}};
  const Bytes bytes = random_bytes(48, random);
  const auto findings = compared({{flat, transposed(bytes, 6, 2)}}, {{tall, bytes}});
  ASSERT_THAT(findings, ElementsAre(finds("RM523", "w", "transpose")));
  EXPECT_THAT(findings[0].message, HasSubstr("the transpose of the right one, [0, 6) x [0, 4)"));
  EXPECT_THAT(compared({{flat, bytes}}, {{tall, bytes}}), ElementsAre(says("RM303", "same bytes")));
  EXPECT_THAT(compared({{flat, random_bytes(48, random)}}, {{tall, bytes}}),
              ElementsAre(says("RM303", "the right checkpoint has 'w' (bf16, [0, 6) x [0, 4))")));
}

TEST(RearrangedTensors, CastsAreSaidToBeSo) {
  const TensorDesc wide{"w", DType::f32, Box{{0, 30}, {0, 3}}};
  const TensorDesc narrow{"w", DType::bf16, Box{{0, 30}, {0, 3}}};
  std::vector<float> values(90);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0F / static_cast<float>(i + 3);
  Bytes f32(360);
  std::memcpy(f32.data(), values.data(), f32.size());
  Bytes bf16(180);
  cast(DType::f32, f32, DType::bf16, bf16);
  EXPECT_THAT(compared({{wide, f32}}, {{narrow, bf16}}),
              ElementsAre(says("RM303", "; that is the left one, cast to bf16")));
  EXPECT_THAT(compared({{narrow, bf16}}, {{wide, f32}}),
              ElementsAre(says("RM303", "; the left one is that, cast to bf16")));
  bf16[17] ^= std::byte{1};
  EXPECT_THAT(compared({{narrow, bf16}}, {{wide, f32}})[0].message,
              ::testing::EndsWith("x [0, 3))"));
}

// In E4M3 as in all these forms denormals double by a shift, and what is normal by the exponent.
TEST(RearrangedTensors, PowersOfTwoAreExactAmongDenormalsToo) {
  const TensorDesc desc{"w", DType::f8_e4m3, Box{{0, 110}}};
  Bytes right(110);
  Bytes left(110);
  for (std::size_t i = 0; i < 110; ++i) {
    right[i] = static_cast<std::byte>(i);
    left[i] = static_cast<std::byte>(i < 8 ? 2 * i : i + 8);
  }
  EXPECT_THAT(compared({{desc, left}}, {{desc, right}}), ElementsAre(finds("RM532", "w", "2^1")));
  for (auto& byte : left) byte |= std::byte{0x80};
  left[0] = std::byte{0};
  EXPECT_THAT(compared({{desc, left}}, {{desc, right}}), ElementsAre(finds("RM532", "w", "-2^1")));
  left[90] ^= std::byte{1};
  EXPECT_THAT(compared({{desc, left}}, {{desc, right}}), ElementsAre(says("RM311", "w")));
  const Bytes ones(110, std::byte{0x38});
  const Bytes twos(110, std::byte{0x40});
  EXPECT_THAT(compared({{desc, ones}}, {{desc, twos}}), ElementsAre(says("RM311", "w")));
}

TEST(RearrangedTensors, LayersNumberedAsTexts) {
  std::mt19937 random(4);
  std::vector<std::string> texts;
  std::vector<Named> right;
  for (int layer = 0; layer < 12; ++layer) {
    texts.push_back(std::to_string(layer));
    right.push_back(
        {{fmt::format("h.{}.w", layer), DType::u8, Box{{0, 32}}}, random_bytes(32, random)});
  }
  std::ranges::sort(texts);
  std::vector<Named> left = right;
  for (std::size_t layer = 0; layer < 12; ++layer) {
    left[layer].bytes = right[std::stoul(texts[layer])].bytes;
  }
  EXPECT_THAT(compared(left, right),
              ElementsAre(says("RM524",
                               "layers of the left side are numbered in the order of their "
                               "texts (10 before 2) in 'h': 10 tensors")));
  EXPECT_THAT(compared(right, left), ElementsAre(says("RM524", "layers of the right side are")));
}

TEST(RearrangedTensors, OneTensorOfALayerIsNotTheLayer) {
  std::mt19937 random(6);
  std::vector<Named> right;
  for (const char* name : {"h.0.a", "h.0.b", "h.0.c", "h.1.a", "h.1.b", "h.1.c"}) {
    right.push_back({{name, DType::u8, Box{{0, 32}}}, random_bytes(32, random)});
  }
  std::vector<Named> left = right;
  left[0].bytes = random_bytes(32, random);
  left[1].bytes = random_bytes(32, random);
  left[2].bytes = right[5].bytes;
  EXPECT_THAT(compared(left, right), ElementsAre(says("RM311", "'h.0.a'"), says("RM311", "'h.0.b'"),
                                                 says("RM311", "'h.0.c'")));
  left[1].bytes = right[4].bytes;
  EXPECT_THAT(compared(left, right),
              ElementsAre(says("RM311", "'h.0.a'"),
                          says("RM524", "layer 0 holds what layer 1 should in 'h': 2 tensors")));
}

TEST(RearrangedTensors, TensorsInACircle) {
  std::mt19937 random(7);
  std::vector<Named> right;
  for (const char* name : {"q", "k", "v"}) {
    right.push_back({{name, DType::u8, Box{{0, 32}}}, random_bytes(32, random)});
  }
  std::vector<Named> left = right;
  left[0].bytes = right[1].bytes;
  left[1].bytes = right[2].bytes;
  left[2].bytes = right[0].bytes;
  EXPECT_THAT(compared(left, right),
              ElementsAre(says("RM524",
                               "'q' holds what 'k' should, 'k' what 'v' should, 'v' what 'q' "
                               "should: bit for bit")));
}

TEST(RearrangedTensors, TransposesOfEachExpert) {
  std::mt19937 random(8);
  const TensorDesc ours{"experts.up", DType::bf16, Box{{0, 3}, {0, 5}, {0, 8}}};
  const TensorDesc theirs{"experts.up", DType::bf16, Box{{0, 3}, {0, 8}, {0, 5}}};
  const Bytes bytes = random_bytes(240, random);
  Bytes turned;
  for (std::size_t expert = 0; expert < 3; ++expert) {
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(expert * 80);
    const Bytes one = transposed(Bytes(begin, begin + 80), 5, 2);
    turned.insert(turned.end(), one.begin(), one.end());
  }
  EXPECT_THAT(
      compared({{ours, bytes}}, {{theirs, turned}}),
      ElementsAre(AllOf(finds("RM523", "experts.up", "transpose"),
                        says("RM523", "the transpose of the right one in its last two dims"))));
  turned[100] ^= std::byte{1};
  EXPECT_THAT(compared({{ours, bytes}}, {{theirs, turned}}),
              ElementsAre(says("RM303", "experts.up")));
}

TEST(RearrangedTensors, SmallTensorsOfFewValuesProveNothing) {
  const TensorDesc flags{"flags", DType::boolean, Box{{0, 6}}};
  const Bytes ours{std::byte{1}, std::byte{0}, std::byte{0},
                   std::byte{1}, std::byte{0}, std::byte{0}};
  const Bytes theirs{std::byte{0}, std::byte{1}, std::byte{0},
                     std::byte{1}, std::byte{0}, std::byte{0}};
  EXPECT_THAT(compared({{flags, ours}}, {{flags, theirs}}), ElementsAre(says("RM311", "flags")));
  const TensorDesc one{"a.step", DType::f32, Box{{0, 1}}};
  const TensorDesc two{"b.step", DType::f32, Box{{0, 1}}};
  const Bytes low(4, std::byte{1});
  const Bytes high(4, std::byte{2});
  EXPECT_THAT(compared({{one, low}, {two, high}}, {{one, high}, {two, low}}),
              ElementsAre(says("RM311", "a.step"), says("RM311", "b.step")));
}

// Panels are cut inside of rows and between them; either way each element counts once.
TEST(RearrangedTensors, TensorsLargerThanAPanel) {
  std::mt19937 random(5);
  const TensorDesc wide{"wide", DType::f32, Box{{0, 6}, {0, 70000}}};
  const TensorDesc deep{"deep", DType::u8, Box{{0, 5}, {0, 40}, {0, 3000}}};
  const Bytes rows = random_bytes(std::size_t{6} * 280000, random);
  const Bytes slices = random_bytes(std::size_t{5} * 120000, random);
  const Order order{5, 3, 1, 0, 4, 2};
  Bytes within(slices.size());  // of each slice the rows 20..40 before the rows 0..20
  for (std::size_t slice = 0; slice < 5; ++slice) {
    Order halves = counted(40);
    std::rotate(halves.begin(), halves.begin() + 20, halves.end());
    const auto begin = slices.begin() + static_cast<std::ptrdiff_t>(slice * 120000);
    std::ranges::copy(with_rows(Bytes(begin, begin + 120000), halves),
                      within.begin() + static_cast<std::ptrdiff_t>(slice * 120000));
  }
  EXPECT_THAT(
      compared({{wide, with_rows(rows, order)}, {deep, within}}, {{wide, rows}, {deep, slices}}),
      ElementsAre(finds("RM521", "wide", "reorder"),
                  AllOf(finds("RM521", "deep", "exchange_halves(40)"),
                        says("RM521", "has the slices of dim 1 of the right one"))));
}

TEST(RearrangedTensors, WhatIsTooLargeForTheBudgetIsNotExplained) {
  const MemoryBudget budget(MemoryBudget::least_bytes);
  EXPECT_TRUE(detail::can_hash_slices(budget, {"w", DType::f32, Box{{0, 100000}, {0, 4096}}}));
  EXPECT_FALSE(detail::can_hash_slices(budget, {"w", DType::f32, Box{{0, 100000000}}}));
  EXPECT_FALSE(detail::can_hash_slices(budget, {"w", DType::f32, Box{}}));
  EXPECT_FALSE(detail::can_hash_slices(budget, {"w", DType::f32, Box{{0, 0}, {0, 4}}}));
  EXPECT_FALSE(detail::can_hash_slices(budget, {"w", DType::f4, Box{{0, 8}, {0, 4}}}));
}

// Where everything is different, the last tensor is not read a second time; where one in a while is
// explained, it is.
TEST(RearrangedTensors, WhatIsAllDifferentIsNotSearchedForEver) {
  std::mt19937 random(9);
  std::vector<Named> left;
  std::vector<Named> right;
  for (int number = 0; number < 300; ++number) {
    const TensorDesc desc{fmt::format("w.{}", number), DType::f32, Box{{0, 4}, {0, 4}}};
    left.push_back({desc, random_bytes(64, random)});
    right.push_back({desc, random_bytes(64, random)});
  }
  left.back().bytes = transposed(right.back().bytes, 4, 4);
  EXPECT_THAT(compared(left, right).back(), says("RM311", "'w.299'"));
  left[100].bytes = transposed(right[100].bytes, 4, 4);
  EXPECT_THAT(compared(left, right).back(), finds("RM523", "w.299", "transpose"));
}

struct Shape {
  DType dtype = DType::u8;
  Index rows = 1;
  Index columns = 1;
  bool few_values = false;
};

Shape random_shape(std::mt19937& random) {
  constexpr std::array dtypes{DType::boolean, DType::u8, DType::bf16, DType::f32, DType::i64};
  return {dtypes[random() % dtypes.size()], static_cast<Index>(1 + random() % 40),
          static_cast<Index>(1 + random() % 40), random() % 3 == 0};
}

Named random_tensor(const Shape& shape, std::mt19937& random) {
  Named tensor{{"w", shape.dtype, Box{{0, shape.rows}, {0, shape.columns}}}, {}};
  tensor.bytes = random_bytes(static_cast<std::size_t>(num_bytes(tensor.desc)), random);
  if (shape.few_values || shape.dtype == DType::boolean) {
    for (auto& byte : tensor.bytes) byte &= std::byte{1};
  }
  return tensor;
}

TEST(RearrangedTensors, UnrelatedTensorsAreNeverCalledRearranged) {
  for (unsigned seed = 0; seed < test::num_seeds(2000); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    Shape shape = random_shape(random);
    if (seed % 2 == 0) shape.columns = shape.rows;
    const Named left = random_tensor(shape, random);
    const Named right = random_tensor(shape, random);
    for (const Finding& finding : compared({left}, {right})) {
      EXPECT_EQ(finding.id, "RM311") << finding.message;
    }
  }
}

TEST(RearrangedTensors, ARandomOrderOfRowsOrColumnsIsFound) {
  for (unsigned seed = 0; seed < test::num_seeds(500); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    Shape shape = random_shape(random);
    shape.dtype = DType::f32;
    shape.few_values = false;
    shape.rows += 3;
    shape.columns += 3;
    const Named right = random_tensor(shape, random);
    Named left = right;
    const bool by_rows = random() % 2 == 0;
    Order order = counted(static_cast<std::size_t>(by_rows ? shape.rows : shape.columns));
    std::ranges::shuffle(order, random);
    if (order == counted(order.size())) continue;
    left.bytes = by_rows
                     ? with_rows(right.bytes, order)
                     : with_columns(right.bytes, static_cast<std::size_t>(shape.rows), 4, order);
    const auto findings = compared({left}, {right});
    ASSERT_THAT(findings, SizeIs(1));
    EXPECT_THAT(findings[0].id, ::testing::AnyOf("RM521", "RM522")) << findings[0].message;
    EXPECT_THAT(findings[0].message, HasSubstr(by_rows ? "has the rows" : "has the columns"));
    // One more bit, and they are not the same rows any more.
    left.bytes[random() % left.bytes.size()] ^= std::byte{4};
    EXPECT_THAT(compared({left}, {right}), ElementsAre(says("RM311", "first difference")));
  }
}

}  // namespace
}  // namespace remesh
