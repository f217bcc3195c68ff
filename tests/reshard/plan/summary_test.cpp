#include "remesh/plan/summary.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arbitrary.hpp"
#include "remesh/core/error.hpp"
#include "remesh/schema/pieces.hpp"

namespace remesh {
namespace {

using ::testing::ElementsAre;

Catalog one_matrix(const Mesh& mesh, const Split& split) {
  Catalog catalog;
  catalog.tensors = {{"w", DType::f32, Box{{0, 4}, {0, 6}}}};
  catalog.layout = Layout(mesh, {{{split}, {}}}, {{0, -1}}, {});
  return catalog;
}

// Rows over tp 2 become columns over tp 2, on two dp replicas. Of its 4 x 3 elements each rank has
// the 2 x 3 that lie in its own rows, so half stays.
TEST(Summary, CountsWhatIsReadWrittenKeptAndMoved) {
  const Split rows{.dim = 0, .over = {"tp"}};
  const Split columns{.dim = 1, .over = {"tp"}};
  const Catalog source = one_matrix(Mesh({{"tp", 2}}), rows);
  const Catalog target = one_matrix(Mesh({{"tp", 2}, {"dp", 2}}), columns);
  for (const std::int64_t copies : {1, 2, 3}) {
    const PlanSummary summary = summarize(source, target, copies);
    EXPECT_EQ(summary.num_tensors, 1);
    EXPECT_EQ(summary.payload_bytes, 4 * 6 * 4);
    EXPECT_EQ(summary.read_bytes, 4 * 6 * 4);
    EXPECT_EQ(summary.write_bytes, std::min(copies, std::int64_t{2}) * 4 * 6 * 4);
    EXPECT_EQ(summary.wanted_bytes, 2 * 4 * 6 * 4);
    EXPECT_EQ(summary.kept_bytes, 2 * 2 * 3 * 4);
    EXPECT_EQ(summary.moved_bytes, 2 * 4 * 6 * 4 - 2 * 2 * 3 * 4);
    EXPECT_EQ(summary.replicated_tensors, 0);
    EXPECT_THAT(summary.rank_bytes, ElementsAre(48, 48, 48, 48));
  }
  EXPECT_EQ(summarize(target, source, 1).replicated_tensors, 1);
}

TEST(Summary, RefusesOtherTensors) {
  const Catalog source = one_matrix(Mesh(), {.dim = 0, .over = {"tp"}});
  Catalog target = source;
  target.tensors[0].dtype = DType::i32;
  EXPECT_THROW(summarize(source, target, 1), Error);
}

// Element by element: what a rank wants, and which of that it had.
struct Counted {
  std::int64_t wanted = 0;
  std::int64_t kept = 0;
};

bool has(const std::vector<Box>& boxes, const std::vector<Index>& element) {
  return std::ranges::any_of(boxes, [&](const Box& box) {
    for (int dim = 0; dim < box.ndim(); ++dim) {
      const Index at = element[static_cast<std::size_t>(dim)];
      if (at < box[dim].begin || at >= box[dim].end) return false;
    }
    return true;
  });
}

std::vector<std::vector<Index>> elements_of(const Box& extent) {
  std::vector<std::vector<Index>> all{{}};
  for (int dim = 0; dim < extent.ndim(); ++dim) {
    std::vector<std::vector<Index>> longer;
    for (const auto& element : all) {
      for (Index at = 0; at < extent[dim].size(); ++at) {
        longer.push_back(element);
        longer.back().push_back(at);
      }
    }
    all = std::move(longer);
  }
  return all;
}

Counted count(const Catalog& source, const Catalog& target, std::size_t tensor) {
  const TensorDesc& desc = target.tensors[tensor];
  const Pieces held(source.layout, source.tensors);
  const Pieces wanted(target.layout, target.tensors);
  Counted counted;
  for (Rank rank = 0; rank < target.layout.mesh().num_ranks(); ++rank) {
    const bool old_rank = rank < source.layout.mesh().num_ranks();
    const auto had = old_rank ? held.on(tensor, rank) : std::vector<Box>{};
    const auto wants = wanted.on(tensor, rank);
    for (const auto& element : elements_of(desc.extent)) {
      if (!has(wants, element)) continue;
      ++counted.wanted;
      counted.kept += has(had, element) ? 1 : 0;
    }
  }
  return counted;
}

TEST(Summary, AgreesWithCountingElements) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Arbitrary arbitrary(seed);
    const Catalog source = arbitrary.catalog();
    Catalog target = source;
    target.layout = arbitrary.layout(source.tensors);
    std::int64_t wanted_bits = 0;
    std::int64_t kept_bits = 0;
    for (std::size_t tensor = 0; tensor < source.tensors.size(); ++tensor) {
      const Counted counted = count(source, target, tensor);
      wanted_bits += counted.wanted * bits(source.tensors[tensor].dtype);
      kept_bits += counted.kept * bits(source.tensors[tensor].dtype);
    }
    const PlanSummary summary = summarize(source, target, 1);
    ASSERT_EQ(summary.wanted_bytes * 8, wanted_bits);
    ASSERT_EQ(summary.kept_bytes * 8, kept_bits);
    ASSERT_EQ(summary.moved_bytes * 8, wanted_bits - kept_bits);
  }
}

// Two equal tensors of five elements on one line over two ranks: each rank has one of them.
TEST(Summarize, CountsTensorsWhereTheyLieOnALine) {
  Catalog source;
  source.tensors = {{"a", DType::f32, Box{{0, 5}}}, {"b", DType::f32, Box{{0, 5}}}};
  source.layout = Layout(Mesh(), {{}}, {{0}, {0}}, {});
  Catalog target = source;
  Placement on_line;
  on_line.flat.emplace();
  on_line.flat->over = {"dp"};
  target.layout = Layout(Mesh({{"dp", 2}}), {on_line}, {{0}, {0}}, {});
  EXPECT_EQ(summarize(source, target, 1).rank_bytes, (std::vector<std::int64_t>{20, 20}));
}

TEST(Summarize, RefusesATargetThatLeavesElementsToNobody) {
  Catalog source;
  source.tensors = {{"w", DType::bf16, Box{{0, 4}}}};
  source.layout = Layout(Mesh({{"tp", 2}}), {{}}, {{0}}, {});
  Catalog target = source;
  Placement nowhere;
  nowhere.pins = {{.axis = "tp", .to = PinTo::coordinates, .coordinates = {7}}};
  target.layout = Layout(Mesh({{"tp", 2}}), {nowhere}, {{0}}, {});
  try {
    summarize(source, target, 1);
    FAIL() << "was planned";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    EXPECT_STREQ(error.what(),
                 "cannot place 'w' (bf16, [0, 4)) on tp=2 (2 ranks, order tp): its placement gives "
                 "[0, 4) to no rank");
  }
}

}  // namespace
}  // namespace remesh
