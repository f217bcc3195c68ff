#include "remesh/plan/plan.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arbitrary.hpp"
#include "remesh/core/error.hpp"

namespace remesh {
namespace {

using ::testing::ElementsAre;
using ::testing::StrEq;

const TensorDesc weight{"mlp.up.weight", DType::bf16, Box{{0, 8}, {0, 4}}};

TEST(PlanTensor, SplittingTwoWaysIntoFourSendsEachQuarterOnce) {
  const std::vector<HeldBox> tp2{{Box{{0, 4}, {0, 4}}, {0}}, {Box{{4, 8}, {0, 4}}, {1}}};
  const std::vector<HeldBox> tp4{{Box{{0, 2}, {0, 4}}, {0}},
                                 {Box{{2, 4}, {0, 4}}, {1}},
                                 {Box{{4, 6}, {0, 4}}, {2}},
                                 {Box{{6, 8}, {0, 4}}, {3}}};

  EXPECT_THAT(plan_tensor(weight, tp2, tp4),
              ElementsAre(Move{0, 0, Box{{0, 2}, {0, 4}}}, Move{0, 1, Box{{2, 4}, {0, 4}}},
                          Move{1, 2, Box{{4, 6}, {0, 4}}}, Move{1, 3, Box{{6, 8}, {0, 4}}}));
}

TEST(PlanTensor, WhatTheTargetHoldsDoesNotTravel) {
  const std::vector<HeldBox> held{{weight.extent, {0, 1}}};
  const std::vector<HeldBox> wanted{{weight.extent, {1, 0}}};
  EXPECT_THAT(plan_tensor(weight, held, wanted),
              ElementsAre(Move{1, 1, weight.extent}, Move{0, 0, weight.extent}));
}

TEST(PlanTensor, ReplicasShareTheSending) {
  const std::vector<HeldBox> held{{weight.extent, {0, 2}}};
  const std::vector<HeldBox> wanted{{weight.extent, {1, 3}}};
  EXPECT_THAT(plan_tensor(weight, held, wanted),
              ElementsAre(Move{0, 1, weight.extent}, Move{2, 3, weight.extent}));
}

TEST(PlanTensor, AScalarMovesWhole) {
  const TensorDesc scalar{"step", DType::f32, Box{}};
  EXPECT_THAT(plan_tensor(scalar, std::vector<HeldBox>{{Box{}, {0}}},
                          std::vector<HeldBox>{{Box{}, {0, 1}}}),
              ElementsAre(Move{0, 0, Box{}}, Move{0, 1, Box{}}));
}

TEST(PlanTensor, NamesTheMissingElementsOfAnIncompleteSource) {
  const std::vector<HeldBox> held{{Box{{0, 4}, {0, 4}}, {0}}};
  const std::vector<HeldBox> wanted{{Box{{2, 8}, {0, 4}}, {5}}};
  try {
    plan_tensor(weight, held, wanted);
    FAIL() << "planned elements that nobody holds";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::incomplete);
    EXPECT_THAT(error.what(),
                StrEq("cannot reshard 'mlp.up.weight' (bf16, [0, 8) x [0, 4)): target rank 5 needs "
                      "[2, 8) x [0, 4), but no source rank holds [4, 8) x [0, 4); is a shard of "
                      "the source checkpoint missing?"));
  }
}

// One element on one rank, by its coordinates.
using Placed = std::tuple<Rank, std::vector<Index>>;

void place(std::map<Placed, int>& placed, Rank rank, const Box& box) {
  if (box.empty()) return;
  std::vector<Index> at;
  for (int dim = 0; dim < box.ndim(); ++dim) at.push_back(box[dim].begin);
  while (true) {
    ++placed[{rank, at}];
    int dim = box.ndim() - 1;
    for (; dim >= 0; --dim) {
      auto& here = at[static_cast<std::size_t>(dim)];
      if (++here < box[dim].end) break;
      here = box[dim].begin;
    }
    if (dim < 0) return;
  }
}

// The property that matters: whatever the two layouts, each wanted element arrives exactly once,
// from a rank that has it, and from the target itself if it has it. Counted element by element over
// ranks, from Layout::box() of each single rank, so it shares no code with the planner.
TEST(PlanTensor, EveryWantedElementArrivesExactlyOnce) {
  for (unsigned seed = 0; seed < 10000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Arbitrary arbitrary(seed);
    const TensorDesc desc = arbitrary.tensor("t");
    const Layout from = arbitrary.layout({desc});
    const Layout to = arbitrary.layout({desc});

    std::map<Placed, int> available, asked, arrived;
    for (Rank rank = 0; rank < from.mesh().num_ranks(); ++rank) {
      if (const auto box = from.box(0, desc, rank)) place(available, rank, *box);
    }
    for (Rank rank = 0; rank < to.mesh().num_ranks(); ++rank) {
      if (const auto box = to.box(0, desc, rank)) place(asked, rank, *box);
    }
    for (const Move& move : plan_tensor(desc, from.boxes(0, desc), to.boxes(0, desc))) {
      std::map<Placed, int> sent, received;
      place(sent, move.source, move.box);
      place(received, move.target, move.box);
      for (const auto& [element, count] : sent) {
        ASSERT_TRUE(available.contains(element)) << "rank " << move.source << " sent what it lacks";
      }
      for (const auto& [element, count] : received) {
        arrived[element] += count;
        ASSERT_TRUE(move.source == move.target || !available.contains(element))
            << "rank " << move.target << " was sent what it holds";
      }
    }
    ASSERT_EQ(arrived, asked);
  }
}

}  // namespace
}  // namespace remesh
