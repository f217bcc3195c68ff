#include "remesh/schema/layout.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arbitrary.hpp"
#include "dealt.hpp"
#include "lying.hpp"
#include "numbered_tensor.hpp"
#include "remesh/core/error.hpp"
#include "seeds.hpp"

namespace remesh {

void PrintTo(const HeldBox& held, std::ostream* out) {
  *out << to_string(held.box) << " on ranks " << ::testing::PrintToString(held.holders);
}

namespace {

using test::over;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Layout one_tensor(Mesh mesh, Placement placement, Stages stages = {}, std::int32_t layer = -1) {
  return {std::move(mesh), {std::move(placement)}, {{0, layer}}, std::move(stages)};
}

Split grouped(Split split, Index groups, Beyond beyond) {
  split.groups = groups;
  split.beyond = beyond;
  return split;
}

Split named(Split split, const std::string& unit) {
  split.unit = unit;
  return split;
}

std::vector<HeldBox> boxes_of(const Layout& layout, const TensorDesc& desc) {
  return Pieces(layout, {&desc, 1}).of(0);
}

std::vector<HeldBox> boxes(const Layout& layout, const Box& extent) {
  const std::vector<TensorDesc> tensors{{"w", DType::bf16, extent}};
  return Pieces(layout, tensors).of(0);
}

template <typename Call>
void expect_refused(Errc code, const std::string& message, const Call& call) {
  try {
    call();
    FAIL() << "accepted; expected: " << message;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_EQ(error.what(), message);
  }
}

TEST(Stages, AreAsEvenAsCanBe) {
  EXPECT_THAT(even_stages(10, 4).layers, ElementsAre(3, 3, 2, 2));
  EXPECT_THAT(even_stages(8, 4).layers, ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(even_stages(3, 3).layers, ElementsAre(1, 1, 1));
  EXPECT_THAT(even_stages(7, 1).layers, ElementsAre(7));
}

TEST(Stages, AreNotMoreThanThereAreLayers) {
  expect_refused(Errc::invalid_argument,
                 "cannot deal 3 layers to 4 pipeline stages: a stage would be empty; the nearest "
                 "legal pp is 3",
                 [] { even_stages(3, 4); });
}

TEST(Stages, KnowWhereALayerIs) {
  const Stages stages{{3, 1, 2}};
  EXPECT_EQ(stages.num_layers(), 6);
  std::vector<Index> found;
  for (Index layer = 0; layer < 6; ++layer) found.push_back(stages.stage_of(layer));
  EXPECT_THAT(found, ElementsAre(0, 0, 0, 1, 2, 2));
  expect_refused(Errc::invalid_argument, "layer 6 is on no stage: the stages have 6 layers",
                 [&] { stages.stage_of(6); });
  EXPECT_THROW(stages.stage_of(-1), Error);
}

TEST(Layout, ByDefaultIsOneRankThatHoldsEverything) {
  const Layout layout = Layout::replicated(Mesh(), 1);
  EXPECT_THAT(boxes(layout, Box{{0, 3}}), ElementsAre(HeldBox{Box{{0, 3}}, {0}}));
}

TEST(Layout, ReplicatesOverAxesThatNoRuleNames) {
  EXPECT_THAT(boxes(Layout::replicated(Mesh({{"tp", 2}, {"dp", 2}}), 1), Box{{0, 3}}),
              ElementsAre(HeldBox{Box{{0, 3}}, {0, 1, 2, 3}}));
}

// Ranks 0, 1, 2, 3 sit at (tp, dp) = (0, 0), (1, 0), (0, 1), (1, 1).
TEST(Layout, NamesAllHoldersOfASplitBox) {
  const Layout layout = one_tensor(Mesh({{"tp", 2}, {"dp", 2}}), {{over(1, {"tp"})}, {}});
  EXPECT_THAT(
      boxes(layout, Box{{0, 4}, {0, 8}}),
      ElementsAre(HeldBox{Box{{0, 4}, {0, 4}}, {0, 2}}, HeldBox{Box{{0, 4}, {4, 8}}, {1, 3}}));
}

TEST(Layout, SplitsTwoDims) {
  const Layout layout =
      one_tensor(Mesh({{"tp", 2}, {"dp", 2}}), {{over(0, {"dp"}), over(1, {"tp"})}, {}});
  EXPECT_THAT(boxes(layout, Box{{0, 2}, {0, 2}}),
              ElementsAre(HeldBox{Box{{0, 1}, {0, 1}}, {0}}, HeldBox{Box{{0, 1}, {1, 2}}, {1}},
                          HeldBox{Box{{1, 2}, {0, 1}}, {2}}, HeldBox{Box{{1, 2}, {1, 2}}, {3}}));
}

TEST(Layout, LetsRanksShareKvHeads) {
  const Layout layout =
      one_tensor(Mesh({{"tp", 4}}), {{grouped(over(0, {"tp"}), 2, Beyond::share)}, {}});
  EXPECT_THAT(boxes(layout, Box{{0, 6}}),
              ElementsAre(HeldBox{Box{{0, 3}}, {0, 1}}, HeldBox{Box{{3, 6}}, {2, 3}}));
}

// 10 over 4 in chunks is 3, 3, 3, 1; over 2 and then over 2 it is 5, 5 and then 3, 2, 3, 2.
TEST(Layout, TellsOneIndexOverTwoAxesFromTwoNestedSplits) {
  const Mesh mesh({{"cp", 2}, {"dp", 2}});
  const Split together = over(0, {"cp", "dp"}, SplitRule::chunk);
  EXPECT_THAT(boxes(one_tensor(mesh, {{together}, {}}), Box{{0, 10}}),
              ElementsAre(HeldBox{Box{{0, 3}}, {0}}, HeldBox{Box{{3, 6}}, {1}},
                          HeldBox{Box{{6, 9}}, {2}}, HeldBox{Box{{9, 10}}, {3}}));

  const Split outer = over(0, {"dp"}, SplitRule::chunk);
  const Split inner = over(0, {"cp"}, SplitRule::chunk);
  EXPECT_THAT(boxes(one_tensor(mesh, {{outer, inner}, {}}), Box{{0, 10}}),
              ElementsAre(HeldBox{Box{{0, 3}}, {0}}, HeldBox{Box{{3, 5}}, {1}},
                          HeldBox{Box{{5, 8}}, {2}}, HeldBox{Box{{8, 10}}, {3}}));
}

TEST(Layout, CountsTheFirstAxisOfASplitFastest) {
  const Mesh mesh({{"cp", 2}, {"dp", 2}});
  const Split dp_first = over(0, {"dp", "cp"});
  EXPECT_THAT(boxes(one_tensor(mesh, {{dp_first}, {}}), Box{{0, 4}}),
              ElementsAre(HeldBox{Box{{0, 1}}, {0}}, HeldBox{Box{{1, 2}}, {2}},
                          HeldBox{Box{{2, 3}}, {1}}, HeldBox{Box{{3, 4}}, {3}}));
}

// Six layers on stages of 3, 1 and 2; ranks 0 to 5 sit at (tp, pp) = (0, 0), (1, 0), (0, 1), ...
TEST(Layout, PinsByStage) {
  const Mesh mesh({{"tp", 2}, {"pp", 3}});
  const Stages stages{{3, 1, 2}};
  struct Row {
    Pin pin;
    std::int32_t layer;
    std::vector<Rank> holders;
  };
  // clang-format off
  const Row rows[] = {
      {{"pp", PinTo::layer,       {}},      0, {0, 1}},
      {{"pp", PinTo::layer,       {}},      2, {0, 1}},
      {{"pp", PinTo::layer,       {}},      3, {2, 3}},
      {{"pp", PinTo::layer,       {}},      5, {4, 5}},
      {{"pp", PinTo::first,       {}},     -1, {0, 1}},
      {{"pp", PinTo::last,        {}},     -1, {4, 5}},
      {{"pp", PinTo::ends,        {}},     -1, {0, 1, 4, 5}},
      {{"pp", PinTo::coordinates, {1}},    -1, {2, 3}},
      {{"pp", PinTo::coordinates, {0, 1}}, -1, {0, 1, 2, 3}},
      {{"tp", PinTo::coordinates, {1}},    -1, {1, 3, 5}},
  };
  // clang-format on
  for (const Row& row : rows) {
    const Layout layout = one_tensor(mesh, {{}, {row.pin}}, stages, row.layer);
    EXPECT_THAT(boxes(layout, Box{{0, 2}}), ElementsAre(HeldBox{Box{{0, 2}}, row.holders}))
        << to_string(layout.placement(0)) << ", layer " << row.layer;
  }
}

TEST(Layout, PinsToBothEndsOfOneStageOnce) {
  EXPECT_THAT(boxes(one_tensor(Mesh({{"pp", 1}}), {{}, {{"pp", PinTo::ends, {}}}}), Box{{0, 2}}),
              ElementsAre(HeldBox{Box{{0, 2}}, {0}}));
}

TEST(Layout, LeavesOutEmptyBoxesUnlessThereIsNothingElse) {
  const Layout layout = one_tensor(Mesh({{"tp", 4}}), {{over(0, {"tp"})}, {}});
  EXPECT_THAT(boxes(layout, Box{{0, 2}}),
              ElementsAre(HeldBox{Box{{0, 1}}, {0}}, HeldBox{Box{{1, 2}}, {1}}));
  EXPECT_THAT(boxes(layout, Box{{0, 0}, {0, 3}}),
              ElementsAre(HeldBox{Box{{0, 0}, {0, 3}}, {0, 1, 2, 3}}));
}

TEST(Layout, GivesNothingToWhoIsLeftOut) {
  const std::vector<TensorDesc> tensors{{"w", DType::bf16, Box{{0, 2}}}};
  const Layout split = one_tensor(Mesh({{"tp", 3}}), {{over(0, {"tp"})}, {}, {}});
  EXPECT_EQ(test::box_on(split, tensors, 0, 2), std::nullopt);
  const Layout pinned = one_tensor(Mesh({{"tp", 3}}), {{}, {{"tp", PinTo::coordinates, {0}}}, {}});
  EXPECT_EQ(test::box_on(pinned, tensors, 0, 2), std::nullopt);
  EXPECT_EQ(test::box_on(pinned, tensors, 0, 0), (Box{{0, 2}}));
}

TEST(Layout, NamesTheTensorThatCannotBePlaced) {
  const TensorDesc desc{"q.weight", DType::bf16, Box{{0, 12}, {0, 4}}};
  const Split heads = named(grouped(over(0, {"tp"}), 4, Beyond::refuse), "attention heads");
  expect_refused(Errc::invalid_argument,
                 "cannot place 'q.weight' (bf16, [0, 12) x [0, 4)): 4 attention heads cannot be "
                 "divided over tp 3",
                 [&] {
                   boxes_of(one_tensor(Mesh({{"tp", 3}}), {{heads}, {}, {}}), desc);
                 });
  expect_refused(Errc::invalid_argument,
                 "cannot place 'q.weight' (bf16, [0, 12) x [0, 4)): its placement splits dim 2, "
                 "but it has 2 dims",
                 [&] {
                   boxes_of(one_tensor(Mesh(), {{over(2, {"tp"})}, {}, {}}), desc);
                 });
}

TEST(Layout, RefusesNumbersOutOfRange) {
  const Pin layer{"pp", PinTo::layer, {}};
  expect_refused(Errc::invalid_argument, "a tensor has placement 1, but the layout lists 1", [] {
    Layout(Mesh(), {Placement{}}, {{1, -1}}, {});
  });
  expect_refused(Errc::invalid_argument, "a layout lists 3 stages, but its mesh has pp 2", [] {
    Layout(Mesh({{"pp", 2}}), {}, {}, {{1, 1, 1}});
  });
  expect_refused(Errc::invalid_argument, "a tensor is of layer 4, but the layout has 4 layers",
                 [&] {
                   one_tensor(Mesh({{"pp", 2}}), {{}, {layer}}, {{2, 2}}, 4);
                 });
  expect_refused(Errc::invalid_argument, "a tensor is of layer -1, but the layout has 4 layers",
                 [&] {
                   one_tensor(Mesh({{"pp", 2}}), {{}, {layer}}, {{2, 2}}, -1);
                 });
  expect_refused(Errc::invalid_argument, "a tensor is of layer 0, but the layout has 0 layers",
                 [&] {
                   one_tensor(Mesh({{"pp", 2}}), {{}, {layer}}, {}, 0);
                 });
}

TEST(LayoutOn, KeepsThePlacementsAndDealsTheLayersAnew) {
  const Placement placement{{over(0, {"tp"})}, {{"pp", PinTo::layer, {}}}};
  const Layout before = one_tensor(Mesh({{"tp", 2}, {"pp", 2}}), placement, {{4, 2}}, /*layer=*/3);
  const Layout after = before.on(Mesh({{"tp", 1}, {"pp", 3}}));

  EXPECT_EQ(after, one_tensor(Mesh({{"tp", 1}, {"pp", 3}}), placement, {{2, 2, 2}}, 3));
  EXPECT_THAT(boxes(before, Box{{0, 4}}),
              ElementsAre(HeldBox{Box{{0, 2}}, {0}}, HeldBox{Box{{2, 4}}, {1}}));
  EXPECT_THAT(boxes(after, Box{{0, 4}}), ElementsAre(HeldBox{Box{{0, 4}}, {1}}));
  expect_refused(Errc::invalid_argument,
                 "cannot deal 6 layers to 7 pipeline stages: a stage would be empty; the nearest "
                 "legal pp is 6",
                 [&] {
                   before.on(Mesh({{"pp", 7}}));
                 });
}

TEST(Layout, RefusesASplitOverOneAxisTwice) {
  expect_refused(Errc::invalid_argument, "a placement is divided over 'tp' twice", [] {
    one_tensor(Mesh({{"tp", 2}}), {{over(0, std::vector<std::string>(64, "tp"))}, {}});
  });
}

TEST(Layout, RefusesALayerBeyondTheStagesWhateverTheTensorIsPinnedTo) {
  expect_refused(Errc::invalid_argument, "a tensor is of layer 3, but the layout has 3 layers", [] {
    one_tensor(Mesh({{"pp", 2}}), {}, {{2, 1}}, /*layer=*/3);
  });
}

TEST(LayoutOn, RefusesAnAxisThatNoPlacementUses) {
  const Layout layout = one_tensor(Mesh(), {{over(0, {"tp"})}, {}});
  EXPECT_EQ(layout.on(Mesh({{"tp", 2}, {"dp", 3}, {"cp", 2}, {"pp", 1}})).mesh().num_ranks(), 12);
  expect_refused(Errc::unsupported,
                 "cannot place the tensors on pp 2: no rule of their layout uses that axis; give "
                 "rules that do with `--rules FILE`",
                 [&] {
                   layout.on(Mesh({{"tp", 2}, {"pp", 2}}));
                 });
}

TEST(UnevenSplits, NameTheSizeTheAxisAndTheParts) {
  const Split vocabulary = named(over(0, {"tp"}), "vocabulary");
  const Layout layout(Mesh({{"tp", 4}, {"pp", 3}}), {{{vocabulary}, {}}},
                      {{0, -1}, {0, -1}, {0, -1}}, {{3, 3, 2}});
  const std::vector<TensorDesc> tensors{{"embed", DType::bf16, Box{{0, 515}, {0, 8}}},
                                        {"head", DType::bf16, Box{{0, 515}, {0, 8}}},
                                        {"even", DType::bf16, Box{{0, 516}, {0, 8}}}};
  EXPECT_THAT(
      uneven_splits(layout, tensors),
      ElementsAre("layers 8 over pp 3: 3, 3, 2", "vocabulary 515 over tp 4: 129, 129, 129, 128"));
}

TEST(UnevenSplits, CountEqualPartsWhereThereAreMany) {
  const Split split = over(1, {"tp", "dp"});
  const Layout layout = one_tensor(Mesh({{"tp", 4}, {"dp", 2}}), {{split}, {}});
  const std::vector<TensorDesc> tensors{{"w", DType::bf16, Box{{0, 2}, {0, 11}}}};
  EXPECT_THAT(uneven_splits(layout, tensors),
              ElementsAre("dim 1 of 'w' 11 over tp*dp 8: 2 x 3, 1 x 5"));
}

TEST(UnevenSplits, AreNoneWhereTheMeshDividesEverything) {
  const Layout layout = one_tensor(Mesh({{"tp", 4}}), {{over(0, {"tp"})}, {}});
  const std::vector<TensorDesc> tensors{{"w", DType::bf16, Box{{0, 8}}}};
  EXPECT_THAT(uneven_splits(layout, tensors), IsEmpty());
}

// 12 over dp 2 is 6 and 6; each 6 over tp 4 is 2, 2, 1, 1.
TEST(UnevenSplits, LookAtWhatAnOuterSplitLeaves) {
  const Layout layout =
      one_tensor(Mesh({{"tp", 4}, {"dp", 2}}), {{over(0, {"dp"}), over(0, {"tp"})}, {}});
  const std::vector<TensorDesc> tensors{{"w", DType::bf16, Box{{0, 12}}}};
  EXPECT_THAT(uneven_splits(layout, tensors), ElementsAre("dim 0 of 'w' 6 over tp 4: 2, 2, 1, 1"));
}

// What follows says once more, element by element, what a placement means. It shares no code with
// Layout: coordinates come from counting, and a split deals a list of indices like cards.

std::set<Index> elements_of(const Box& extent, const Box& box) {
  std::set<Index> elements;
  test::for_each_element(extent, box, [&](Index place) { elements.insert(place); });
  return elements;
}

TEST(LayoutBoxes, HoldWhatEachRankIsDealtElementByElement) {
  for (unsigned seed = 0; seed < test::num_seeds(200); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Catalog catalog = test::Arbitrary(seed).catalog();
    const Layout& layout = catalog.layout;
    const Pieces pieces(layout, catalog.tensors);
    const test::Dealer dealer(layout, catalog.tensors);
    for (std::size_t tensor = 0; tensor < catalog.tensors.size(); ++tensor) {
      const TensorDesc& desc = catalog.tensors[tensor];
      SCOPED_TRACE(to_string(desc) + ": " + to_string(layout.placement(tensor)) + " on " +
                   describe(layout.mesh()));
      const std::vector<HeldBox> all = pieces.of(tensor);
      for (Rank rank = 0; rank < layout.mesh().num_ranks(); ++rank) {
        const std::vector<Index> dealt = dealer.elements(tensor, rank);
        const std::set<Index> expected(dealt.begin(), dealt.end());
        std::set<Index> found;
        Index count = 0;
        for (const Box& box : pieces.on(tensor, rank)) {
          found.merge(elements_of(desc.extent, box));
          count += box.num_elements();
        }
        ASSERT_EQ(found, expected) << "rank " << rank;
        ASSERT_EQ(count, std::ssize(expected)) << "an element stands in two boxes of a rank";

        std::set<Index> by_boxes;
        for (const HeldBox& held : all) {
          ASSERT_TRUE(std::ranges::is_sorted(held.holders));
          if (std::ranges::count(held.holders, rank) > 0) {
            by_boxes.merge(elements_of(desc.extent, held.box));
          }
        }
        ASSERT_EQ(by_boxes, expected) << "rank " << rank;
      }
    }
  }
}

TEST(LayoutBoxes, AreDisjointAndCoverTheTensor) {
  for (unsigned seed = 0; seed < test::num_seeds(200); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Catalog catalog = test::Arbitrary(seed).catalog();
    for (std::size_t tensor = 0; tensor < catalog.tensors.size(); ++tensor) {
      const TensorDesc& desc = catalog.tensors[tensor];
      std::set<Index> covered;
      Index count = 0;
      const std::vector<HeldBox> all = Pieces(catalog.layout, catalog.tensors).of(tensor);
      for (const HeldBox& held : all) {
        covered.merge(elements_of(desc.extent, held.box));
        count += held.box.num_elements();
      }
      ASSERT_EQ(static_cast<Index>(covered.size()), desc.extent.num_elements()) << to_string(desc);
      ASSERT_EQ(count, desc.extent.num_elements()) << "an element stands in two boxes";
      ASSERT_TRUE(std::ranges::is_sorted(all, {}, &HeldBox::box));
      ASSERT_FALSE(all.empty());
    }
  }
}

}  // namespace
}  // namespace remesh
