#include "remesh/plan/plan.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arbitrary.hpp"
#include "dealt.hpp"
#include "numbered_tensor.hpp"
#include "remesh/core/error.hpp"
#include "seeds.hpp"

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

// How often each element is on each rank: [rank][place in row-major order].
class Counts {
 public:
  Counts(const Box& extent, Index num_ranks)
      : extent_(extent),
        counts_(static_cast<std::size_t>(num_ranks),
                std::vector<int>(static_cast<std::size_t>(extent.num_elements()))) {}

  void add(Rank rank, Index place) { ++at(rank, place); }

  void add(Rank rank, const Box& box) {
    test::for_each_element(extent_, box, [&](Index place) { ++at(rank, place); });
  }

  // Whether the rank has every element of the box.
  bool has_all(Rank rank, const Box& box) {
    return rank < std::ssize(counts_) && count(rank, box) == box.num_elements();
  }
  bool has_any(Rank rank, const Box& box) {
    return rank < std::ssize(counts_) && count(rank, box) > 0;
  }

  friend bool operator==(const Counts& a, const Counts& b) { return a.counts_ == b.counts_; }

 private:
  int& at(Rank rank, Index place) {
    return counts_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(place)];
  }

  Index count(Rank rank, const Box& box) {
    Index held = 0;
    test::for_each_element(extent_, box, [&](Index place) { held += at(rank, place) > 0 ? 1 : 0; });
    return held;
  }

  Box extent_;
  std::vector<std::vector<int>> counts_;
};

// What each rank has of the first tensor.
void deal(const Layout& layout, const std::vector<TensorDesc>& tensors, Counts& counts) {
  const test::Dealer dealer(layout, tensors);
  for (Rank rank = 0; rank < layout.mesh().num_ranks(); ++rank) {
    for (const Index place : dealer.elements(0, rank)) counts.add(rank, place);
  }
}

// The property that matters: whatever the two layouts, each wanted element arrives exactly once,
// from a rank that has it, and from the target itself if it has it. Counted element by element over
// ranks; what each of them has and wants is dealt like cards, with no code of the schema's or the
// planner's.
TEST(PlanTensor, EveryWantedElementArrivesExactlyOnce) {
  for (unsigned seed = 0; seed < test::num_seeds(2000); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Arbitrary arbitrary(seed);
    // The others may be on a line with the first.
    const std::vector<TensorDesc> tensors = arbitrary.tensors(3);
    const TensorDesc& desc = tensors.front();
    const Layout from = arbitrary.layout(tensors);
    const Layout to = arbitrary.layout(tensors);
    const Pieces held(from, tensors);
    const Pieces wanted(to, tensors);

    Counts available(desc.extent, from.mesh().num_ranks());
    Counts asked(desc.extent, to.mesh().num_ranks());
    Counts arrived(desc.extent, to.mesh().num_ranks());
    deal(from, tensors, available);
    deal(to, tensors, asked);
    for (const Move& move : plan_tensor(desc, held.of(0), wanted.of(0))) {
      arrived.add(move.target, move.box);
      ASSERT_TRUE(available.has_all(move.source, move.box))
          << "rank " << move.source << " sent what it lacks";
      ASSERT_TRUE(move.source == move.target || !available.has_any(move.target, move.box))
          << "rank " << move.target << " was sent what it holds";
    }
    ASSERT_EQ(arrived, asked);
  }
}

}  // namespace
}  // namespace remesh
