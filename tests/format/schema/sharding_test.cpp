#include "remesh/schema/sharding.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lying.hpp"
#include "remesh/core/error.hpp"
#include "remesh/schema/mesh_text.hpp"
#include "remesh/schema/pieces.hpp"

namespace remesh {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A parameter of 5 x 2, its moment, a step that is a scalar, and an expert with its moment.
const std::vector<TensorDesc> tensors{{"w", DType::bf16, Box{{0, 5}, {0, 2}}},
                                      {"w@exp_avg", DType::f32, Box{{0, 5}, {0, 2}}},
                                      {"w@step", DType::f32, Box{}},
                                      {"e", DType::bf16, Box{{0, 4}}},
                                      {"e@exp_avg", DType::f32, Box{{0, 4}}}};

Layout whole(const char* mesh) {
  const Placement by_tp{{test::over(1, {"tp"})}, {}, {}};
  const Placement of_expert{{}, {{"ep", PinTo::expert, {}, 2}}, {}};
  return {parse_mesh(mesh), {by_tp, {}, of_expert}, {{0}, {0}, {1}, {2, -1, 1}, {2, -1, 1}}, {}};
}

std::vector<std::string> held(const Layout& layout, std::size_t tensor) {
  return test::held_by_ranks(layout, tensors, tensor);
}

TEST(Sharded, Zero1DividesStatesAsALine) {
  const Layout layout = sharded(whole("tp=2,dp=2"), tensors, {1, {}, {}});
  EXPECT_THAT(held(layout, 0), ElementsAre("[0, 5) x [0, 1)", "[0, 5) x [1, 2)", "[0, 5) x [0, 1)",
                                           "[0, 5) x [1, 2)"));
  // Five elements on each tp rank, padded to 8: four and one.
  EXPECT_THAT(held(layout, 1), ElementsAre("[0, 4) x [0, 1)", "[0, 4) x [1, 2)", "[4, 5) x [0, 1)",
                                           "[4, 5) x [1, 2)"));
  EXPECT_THAT(held(layout, 2), ElementsAre("scalar", "scalar", "scalar", "scalar"));
  const Layout same = sharded(whole("tp=2,dp=2"), tensors, {2, {}, {}});
  EXPECT_EQ(same, layout) << "gradients are in no checkpoint";
}

TEST(Sharded, Zero3DividesAllByChunksBehindOtherSplits) {
  const Layout layout = sharded(whole("tp=2,dp=2"), tensors, {3, {}, {}});
  for (const std::size_t tensor : {0U, 1U}) {
    EXPECT_THAT(held(layout, tensor), ElementsAre("[0, 3) x [0, 1)", "[0, 3) x [1, 2)",
                                                  "[3, 5) x [0, 1)", "[3, 5) x [1, 2)"));
  }
}

TEST(Sharded, ExpertsAreDividedOverTheirOwnReplicas) {
  // 4 ranks, ep 2: expert 1 lies at ep 1, ranks 1 and 3, which are edp 0 and 1.
  const Layout layout = sharded(whole("dp=4,ep=2"), tensors, {3, {}, {}});
  EXPECT_THAT(held(layout, 3), ElementsAre("-", "[0, 2)", "-", "[2, 4)"));
  EXPECT_THAT(held(layout, 0),
              ElementsAre("[0, 2) x [0, 2)", "[2, 4) x [0, 2)", "[4, 5) x [0, 2)", "-"));
}

TEST(Sharded, DpAndCpAreOneIndexInTheOrderOfTheMesh) {
  const Layout cp_first = sharded(whole("dp=2,cp=2"), tensors, {3, {}, {}});
  EXPECT_EQ(cp_first.placement(0).splits.back().over, (std::vector<std::string>{"cp", "dp"}));
  const Layout dp_first = sharded(whole("dp=2,cp=2,order=dp-cp-tp-pp"), tensors, {3, {}, {}});
  EXPECT_EQ(dp_first.placement(0).splits.back().over, (std::vector<std::string>{"dp", "cp"}));
}

TEST(Sharded, Zero0UndoesWhatWasDivided) {
  const Layout before = whole("tp=2,dp=2");
  for (const int zero : {1, 3}) {
    const Layout undone = sharded(sharded(before, tensors, {zero, {}, {}}), tensors, {0, {}, {}});
    for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
      EXPECT_EQ(held(undone, tensor), held(before, tensor)) << tensors[tensor].name;
    }
  }
}

TEST(Sharded, LinesAreAsAsked) {
  Flat megatron;
  megatron.reversed = true;
  megatron.align = 8;
  const Layout layout = sharded(whole("dp=2"), tensors, {1, ShardRule::flat, megatron});
  const Flat& line = *layout.placement(1).flat;
  EXPECT_EQ(line.over, (std::vector<std::string>{"cp", "dp"}));
  EXPECT_EQ(line.name, "exp_avg");
  EXPECT_TRUE(line.reversed);
  EXPECT_EQ(line.align, 8);
}

// Megatron pads its vocabulary, and divides its optimizer's states as ranges of a buffer.
TEST(Sharded, PaddedVocabulariesLieOnLinesToo) {
  const std::vector<TensorDesc> padded{{"w", DType::bf16, Box{{0, 10}}},
                                       {"w@master", DType::f32, Box{{0, 10}}}};
  Placement vocabulary{{test::over(0, {"tp"}, SplitRule::chunk)}, {}, {}};
  vocabulary.splits.front().block = 4;
  const Layout before(parse_mesh("tp=2,dp=2"), {vocabulary}, {{0}, {0}}, {});
  const Layout layout = sharded(before, padded, {1, {}, {}});
  // 8 rows and 2 on the tp ranks; over dp 2 in ranges of a multiple of 2: 4 + 4, and 2 + 0.
  const Pieces pieces(layout, padded);
  EXPECT_THAT(pieces.on(1, 0), ElementsAre(Box{{0, 4}}));
  EXPECT_THAT(pieces.on(1, 1), ElementsAre(Box{{8, 10}}));
  EXPECT_THAT(pieces.on(1, 2), ElementsAre(Box{{4, 8}}));
  EXPECT_TRUE(pieces.on(1, 3).empty());
}

TEST(Sharded, BlocksStayWholeInChunksAndAreRefusedOnLines) {
  const std::vector<TensorDesc> quantised{{"w", DType::f8_e4m3, Box{{0, 20}, {0, 4}}},
                                          {"w_scale", DType::f32, Box{{0, 3}, {0, 4}}}};
  const Placement rows{{}, {}, {}, {{0, 8, 0}}};
  const Placement scales{{}, {}, {}, {{0, 8, 20}}};
  const Layout before(parse_mesh("dp=2"), {rows, scales}, {{0}, {1}}, {});
  const Layout layout = sharded(before, quantised, {3, {}, {}});
  const Pieces pieces(layout, quantised);
  EXPECT_THAT(pieces.on(0, 0), ElementsAre(Box{{0, 16}, {0, 4}}));
  EXPECT_THAT(pieces.on(1, 0), ElementsAre(Box{{0, 2}, {0, 4}}));
  EXPECT_THAT(pieces.on(1, 1), ElementsAre(Box{{2, 3}, {0, 4}}));
  try {
    (void)sharded(before, quantised, {3, ShardRule::flat, {}});
    ADD_FAILURE() << "was placed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::unsupported);
    EXPECT_THAT(error.what(),
                HasSubstr("it is in blocks that have scales, which a range would cut"));
  }
}

}  // namespace
}  // namespace remesh
