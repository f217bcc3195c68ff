#include "remesh/schema/pieces.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arbitrary.hpp"
#include "lying.hpp"
#include "remesh/core/error.hpp"
#include "remesh/schema/mesh_text.hpp"

namespace remesh {
namespace {

using test::over;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Flat line_over(std::vector<std::string> axes, FlatUnit unit = FlatUnit::all) {
  Flat flat;
  flat.over = std::move(axes);
  flat.unit = unit;
  return flat;
}

// What each rank holds of the one tensor.
std::vector<std::string> held(const char* mesh, const Box& extent, Placement how,
                              const Placed& placed = {0, -1, -1}, const Stages& stages = {}) {
  const Layout layout(parse_mesh(mesh), {std::move(how)}, {placed}, stages);
  const std::vector<TensorDesc> tensors{{"w", DType::bf16, extent}};
  return test::held_by_ranks(layout, tensors, 0);
}

// ---- One table for each kind, to be checked on paper.

TEST(PiecesByHand, NestedSplitsDivideWhatIsLeft) {
  // FSDP2 over 3 behind TP over 2, dim 7: TP chunks are 4 and 3; of those, chunks over dp 3 are
  // 2, 2, 0 and 1, 1, 1. Ranks: tp fastest. (DTensor's index algebra gives row 6 to another.)
  Placement fsdp{{over(0, {"tp"}, SplitRule::chunk), over(0, {"dp"}, SplitRule::chunk)}, {}, {}};
  EXPECT_THAT(held("tp=2,dp=3", Box{{0, 7}}, fsdp),
              ElementsAre("[0, 2)", "[4, 5)", "[2, 4)", "[5, 6)", "-", "[6, 7)"));
  // Dim 13: 7 and 6; then 3, 3, 1 and 2, 2, 2. (There it raised "overlapping chunks".)
  EXPECT_THAT(held("tp=2,dp=3", Box{{0, 13}}, fsdp),
              ElementsAre("[0, 3)", "[7, 9)", "[3, 6)", "[9, 11)", "[6, 7)", "[11, 13)"));
  // 10 over 2 x 2 as two nested splits is 3, 2, 3, 2; as one index 3, 3, 3, 1.
  EXPECT_THAT(
      held("cp=2,dp=2", Box{{0, 10}},
           {{over(0, {"cp"}, SplitRule::chunk), over(0, {"dp"}, SplitRule::chunk)}, {}, {}}),
      ElementsAre("[0, 3)", "[5, 8)", "[3, 5)", "[8, 10)"));
  EXPECT_THAT(held("cp=2,dp=2", Box{{0, 10}}, {{over(0, {"cp", "dp"}, SplitRule::chunk)}, {}, {}}),
              ElementsAre("[0, 3)", "[3, 6)", "[6, 9)", "[9, 10)"));
}

TEST(PiecesByHand, PartsAreDividedEachByItself) {
  // gate|up of 4 rows each, tp 2: rank 0 has the first half of each.
  Split gate_up = over(0, {"tp"});
  gate_up.parts = {{4}, {4}};
  EXPECT_THAT(
      held("tp=2", Box{{0, 8}, {0, 3}}, {{gate_up}, {}, {}}),
      ElementsAre("[0, 2) x [0, 3) + [4, 6) x [0, 3)", "[2, 4) x [0, 3) + [6, 8) x [0, 3)"));
  // On one rank it is one box.
  EXPECT_THAT(held("tp=1", Box{{0, 8}, {0, 3}}, {{gate_up}, {}, {}}),
              ElementsAre("[0, 8) x [0, 3)"));
  // Disjoint strided shards: FSDP over 2 of the halves that TP left, in their order there: the
  // first two of rows {0, 1, 4, 5}, then the others.
  EXPECT_THAT(
      held("tp=2,dp=2", Box{{0, 8}}, {{gate_up, over(0, {"dp"}, SplitRule::chunk)}, {}, {}}),
      ElementsAre("[0, 2)", "[2, 4)", "[4, 6)", "[6, 8)"));
  // q|k|v: 4 heads of 2, then 2 KV heads of 2 each, on tp 4: k and v are shared by pairs.
  Split qkv = over(0, {"tp"});
  qkv.parts = {{8, 4, Beyond::refuse}, {4, 2, Beyond::share}, {4, 2, Beyond::share}};
  EXPECT_THAT(held("tp=4", Box{{0, 16}}, {{qkv}, {}, {}}),
              ElementsAre("[0, 2) + [8, 10) + [12, 14)", "[2, 4) + [8, 10) + [12, 14)",
                          "[4, 6) + [10, 12) + [14, 16)", "[6, 8) + [10, 12) + [14, 16)"));
}

TEST(PiecesByHand, GroupsStayWholeAreSharedOrAreCut) {
  // QKV interleaved by group: 2 groups of (2 q + k + v) x 2 rows = 8.
  Split groups = over(0, {"tp"});
  groups.groups = 2;
  EXPECT_THAT(held("tp=2", Box{{0, 16}}, {{groups}, {}, {}}), ElementsAre("[0, 8)", "[8, 16)"));
  groups.beyond = Beyond::share;
  EXPECT_THAT(held("tp=4", Box{{0, 16}}, {{groups}, {}, {}}),
              ElementsAre("[0, 8)", "[0, 8)", "[8, 16)", "[8, 16)"));
  groups.beyond = Beyond::divide;
  EXPECT_THAT(held("tp=4", Box{{0, 16}}, {{groups}, {}, {}}),
              ElementsAre("[0, 4)", "[4, 8)", "[8, 12)", "[12, 16)"));
  EXPECT_THAT(held("tp=3", Box{{0, 16}}, {{groups}, {}, {}}),
              ElementsAre("[0, 6)", "[6, 11)", "[11, 16)"));
}

TEST(PiecesByHand, BlocksStayWholeAndScalesGoWithThem) {
  // 20 rows in blocks of 8 (8, 8, 4) over 2: two blocks and one; one scale each.
  Split rows = over(0, {"tp"});
  rows.block = 8;
  EXPECT_THAT(held("tp=2", Box{{0, 20}}, {{rows}, {}, {}}), ElementsAre("[0, 16)", "[16, 20)"));
  // The same as a dim that has scales, and its three scales.
  const Placement weight{{over(0, {"tp"})}, {}, {}, {{0, 8, 0}}};
  const Placement scales{{over(0, {"tp"})}, {}, {}, {{0, 8, 20}}};
  EXPECT_THAT(held("tp=2", Box{{0, 20}}, weight), ElementsAre("[0, 16)", "[16, 20)"));
  EXPECT_THAT(held("tp=2", Box{{0, 3}}, scales), ElementsAre("[0, 2)", "[2, 3)"));
  // A vocabulary of 50257 padded to a multiple of 128 x tp 8: 6400 each, 5457 real ones at the end.
  Split vocabulary = over(0, {"tp"}, SplitRule::chunk);
  vocabulary.block = 128;
  const auto padded = held("tp=8", Box{{0, 50257}}, {{vocabulary}, {}, {}});
  EXPECT_EQ(padded.front(), "[0, 6400)");
  EXPECT_EQ(padded.back(), "[44800, 50257)");
}

TEST(PiecesByHand, ExpertsLieOnTheirOwnGrid) {
  // 4 ranks: tp 2, dp 2 for all else; ep 2, etp 1, edp 2 for experts: order etp-ep-edp.
  const char* mesh = "tp=2,dp=2,ep=2";
  const Placement of_expert{{}, {{"ep", PinTo::expert, {}, 4}}, {}};
  EXPECT_THAT(held(mesh, Box{{0, 6}}, of_expert, {0, -1, 1}),
              ElementsAre("[0, 6)", "-", "[0, 6)", "-"));
  EXPECT_THAT(held(mesh, Box{{0, 6}}, of_expert, {0, -1, 2}),
              ElementsAre("-", "[0, 6)", "-", "[0, 6)"));
  // The same experts stacked: 4 of them along dim 0.
  Split stacked = over(0, {"ep"});
  stacked.groups = 4;
  EXPECT_THAT(
      held(mesh, Box{{0, 4}, {0, 6}}, {{stacked}, {}, {}}),
      ElementsAre("[0, 2) x [0, 6)", "[2, 4) x [0, 6)", "[0, 2) x [0, 6)", "[2, 4) x [0, 6)"));
  // etp 2, ep 2, edp 1: an expert's width over etp, which counts fastest.
  Placement both = of_expert;
  both.splits.push_back(over(0, {"etp"}));
  EXPECT_THAT(held("tp=2,dp=2,ep=2,etp=2", Box{{0, 6}}, both, {0, -1, 3}),
              ElementsAre("-", "-", "[0, 3)", "[3, 6)"));
}

TEST(PiecesByHand, VirtualStagesAreDealtInTurn) {
  // pp 2, vpp 2: stages 0 and 2 lie at pp 0, 1 and 3 at pp 1.
  const Placement by_layer{{}, {{"pp", PinTo::layer, {}, 0}}, {}};
  const Stages stages{{2, 1, 1, 2}};
  const char* mesh = "pp=2,vpp=2";
  const std::vector<std::string> first{"[0, 1)", "-"};
  const std::vector<std::string> second{"-", "[0, 1)"};
  const std::vector<std::string>* expected[] = {&first, &first, &second, &first, &second, &second};
  for (std::int32_t layer = 0; layer < 6; ++layer) {
    EXPECT_EQ(held(mesh, Box{{0, 1}}, by_layer, {0, layer, -1}, stages), *expected[layer])
        << "layer " << layer;
  }
}

TEST(PiecesByHand, ARangeOfALineIsAFewBoxes) {
  // 3 x 4 elements over dp 2: six each. The first has row 0 and half of row 1.
  Placement flat{{}, {}, line_over({"dp"}, FlatUnit::tensor)};
  EXPECT_THAT(
      held("dp=2", Box{{0, 3}, {0, 4}}, flat),
      ElementsAre("[0, 1) x [0, 4) + [1, 2) x [0, 2)", "[1, 2) x [2, 4) + [2, 3) x [0, 4)"));
  // Over 5, 12 elements are padded to 15: three each, and the last has none.
  EXPECT_THAT(held("dp=5", Box{{0, 3}, {0, 4}}, flat),
              ElementsAre("[0, 1) x [0, 3)", "[0, 1) x [3, 4) + [1, 2) x [0, 2)",
                          "[1, 2) x [2, 4) + [2, 3) x [0, 1)", "[2, 3) x [1, 4)", "-"));
  // Behind a split of the columns, a rank's own elements are what is in the line: rank (tp 1, dp 0)
  // has columns 2 and 3, and of those 6 elements the first three.
  flat.splits.push_back(over(1, {"tp"}));
  EXPECT_THAT(
      held("tp=2,dp=2", Box{{0, 3}, {0, 4}}, flat),
      ElementsAre("[0, 1) x [0, 2) + [1, 2) x [0, 1)", "[0, 1) x [2, 4) + [1, 2) x [2, 3)",
                  "[1, 2) x [1, 2) + [2, 3) x [0, 2)", "[1, 2) x [3, 4) + [2, 3) x [2, 4)"));
}

// Three tensors of 5, 4 and 3 elements on one line, as text for each rank: "a[0, 5) b[0, 1)".
std::vector<std::string> on_line(const char* mesh, const Flat& flat) {
  const std::vector<TensorDesc> tensors{{"a", DType::f32, Box{{0, 5}}},
                                        {"b", DType::f32, Box{{0, 4}}},
                                        {"c", DType::f32, Box{{0, 3}}}};
  const Layout layout(parse_mesh(mesh), {{{}, {}, flat}}, {{0, 0}, {0, 0}, {0, 1}}, Stages{{2}});
  const Pieces pieces(layout, tensors);
  std::vector<std::string> all;
  for (Rank rank = 0; rank < layout.mesh().num_ranks(); ++rank) {
    std::string text;
    for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
      for (const Box& box : pieces.on(tensor, rank)) {
        text += (text.empty() ? "" : " ") + tensors[tensor].name + to_string(box);
      }
    }
    all.push_back(text);
  }
  return all;
}

TEST(PiecesByHand, TensorsOnALineFollowEachOther) {
  Flat flat = line_over({"dp"});
  // 12 elements over 2, over 5 (padded to 15).
  EXPECT_THAT(on_line("dp=2", flat), ElementsAre("a[0, 5) b[0, 1)", "b[1, 4) c[0, 3)"));
  EXPECT_THAT(on_line("dp=5", flat),
              ElementsAre("a[0, 3)", "a[3, 5) b[0, 1)", "b[1, 4)", "c[0, 3)", ""));
  // DeepSpeed: each range a multiple of 2, so that 12 over 5 is 20: four each.
  flat.pad_each = 2;
  EXPECT_THAT(on_line("dp=5", flat),
              ElementsAre("a[0, 4)", "a[4, 5) b[0, 3)", "b[3, 4) c[0, 3)", "", ""));
  // Megatron: the last tensor first, each at a multiple of 4, the length a multiple of 8:
  // c at 0, b at 4, a at 8, up to 13; 16 in all, eight each.
  flat = line_over({"dp"});
  flat.reversed = true;
  flat.align = 4;
  flat.pad = 8;
  EXPECT_THAT(on_line("dp=2", flat), ElementsAre("b[0, 4) c[0, 3)", "a[0, 5)"));
  // Buckets that end with 6 elements or more: {a, b} of 9, padded to 10, and {c} of 3, padded to 4.
  flat = line_over({"dp"});
  flat.bucket = 6;
  EXPECT_THAT(on_line("dp=2", flat), ElementsAre("a[0, 5) c[0, 2)", "b[0, 4) c[2, 3)"));
  // A line for each layer: {a, b} of layer 0 and {c} of layer 1: the same ranges here.
  EXPECT_THAT(on_line("dp=2", line_over({"dp"}, FlatUnit::layer)),
              ElementsAre("a[0, 5) c[0, 2)", "b[0, 4) c[2, 3)"));
}

TEST(Pieces, OfReplicasThatAreCutDifferentlyAreDisjoint) {
  // b is on both tp ranks; a only on tp 0, where it shifts b's place in the line.
  const std::vector<TensorDesc> tensors{{"a", DType::f32, Box{{0, 2}}},
                                        {"b", DType::f32, Box{{0, 4}}}};
  const Placement at_first{{}, {{"tp", PinTo::coordinates, {0}, 0}}, line_over({"dp"})};
  const Placement on_both{{}, {}, line_over({"dp"})};
  const Layout layout(parse_mesh("tp=2,dp=2"), {at_first, on_both}, {{0}, {1}}, {});
  const Pieces pieces(layout, tensors);
  EXPECT_THAT(pieces.on(1, 0), ElementsAre(Box{{0, 1}}));  // 2 of a and 1 of b
  EXPECT_THAT(pieces.on(1, 1), ElementsAre(Box{{0, 2}}));
  EXPECT_THAT(pieces.of(1), ElementsAre(HeldBox{Box{{0, 1}}, {0, 1}}, HeldBox{Box{{1, 2}}, {1, 2}},
                                        HeldBox{Box{{2, 4}}, {2, 3}}));
}

// What no oracle of single tensors sees: whatever divides them, every block of a weight lies where
// its scale does, and no block is cut.
TEST(Pieces, OfWeightsAndTheirScalesLieTogether) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Arbitrary arbitrary(seed);
    const Index block = arbitrary.between(2, 5);
    const Index rows = arbitrary.between(1, 40);
    const Index columns = arbitrary.between(1, 40);
    const auto blocks = [block](Index size) { return (size + block - 1) / block; };
    const std::vector<TensorDesc> tensors{
        {"w", DType::u8, Box{{0, rows}, {0, columns}}},
        {"s", DType::u8, Box{{0, blocks(rows)}, {0, blocks(columns)}}}};
    Placement weight;
    for (const char* axis : {"tp", "dp"}) {
      weight.splits.push_back(over(static_cast<int>(arbitrary.between(0, 1)), {axis},
                                   arbitrary.chance(50) ? SplitRule::chunk : SplitRule::balanced));
    }
    Placement scales = weight;
    weight.scaled = {{0, block, 0}, {1, block, 0}};
    scales.scaled = {{0, block, rows}, {1, block, columns}};
    const Mesh mesh({{"tp", arbitrary.between(1, 4)}, {"dp", arbitrary.between(1, 4)}});
    const Layout layout(mesh, {weight, scales}, {{0}, {1}}, {});
    const Pieces pieces(layout, tensors);
    for (Rank rank = 0; rank < mesh.num_ranks(); ++rank) {
      const std::vector<Box> of_weight = pieces.on(0, rank);
      const std::vector<Box> of_scales = pieces.on(1, rank);
      ASSERT_EQ(of_weight.size(), of_scales.size());
      if (of_weight.empty()) continue;
      for (int dim = 0; dim < 2; ++dim) {
        const Range scaled = of_scales.front()[dim];
        ASSERT_EQ(of_weight.front()[dim].begin, scaled.begin * block);
        ASSERT_EQ(of_weight.front()[dim].end,
                  std::min(scaled.end * block, tensors[0].extent[dim].end));
      }
    }
  }
}

TEST(Pieces, RefuseWhatCannotBe) {
  const auto expect_refused = [](const char* message, const auto& call) {
    try {
      call();
      ADD_FAILURE() << "was placed: " << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      EXPECT_THAT(error.what(), HasSubstr(message));
    }
  };
  Split heads = over(0, {"tp"});
  heads.groups = 4;
  heads.block = 8;
  expect_refused("dim 0 would be cut at 12, but it is in blocks of 8", [&] {
    held("tp=2", Box{{0, 24}}, {{heads}, {}, {}});
  });
  Split parts = over(0, {"tp"});
  parts.parts = {{4}, {5}};
  expect_refused("dim 0 has 8 elements, but its 2 parts 9", [&] {
    held("tp=2", Box{{0, 8}}, {{parts}, {}, {}});
  });
  expect_refused("its dim 0 has 4 elements, but one scale for each 8 of 20 is 3", [&] {
    held("tp=2", Box{{0, 4}}, {{over(0, {"tp"})}, {}, {}, {{0, 8, 20}}});
  });
  expect_refused("a placement is in blocks that have scales, and a range of a line", [&] {
    held("dp=2", Box{{0, 8}}, {{}, {}, line_over({"dp"}), {{0, 4, 0}}});
  });
  expect_refused("a placement is divided over 'pp', and pinned to some of 'pp'", [&] {
    held("pp=2", Box{{0, 8}}, {{}, {{"pp", PinTo::first, {}, 0}}, line_over({"pp"}), {}});
  });
  expect_refused(
      "the padding of a placement is 2097152, but a number from 1 to 1048576 is expected", [&] {
        Flat wide = line_over({"dp"});
        wide.pad = 2097152;
        held("dp=2", Box{{0, 8}}, {{}, {}, wide, {}});
      });
  expect_refused("a placement is divided over 'dp' twice", [&] {
    held("dp=2", Box{{0, 8}}, {{over(0, {"dp"})}, {}, line_over({"dp"})});
  });
  expect_refused("a placement uses 'tp' and 'ep', which are axes of two grids", [&] {
    held("tp=2,dp=2,ep=2", Box{{0, 8}, {0, 8}}, {{over(0, {"tp"}), over(1, {"ep"})}, {}, {}});
  });
  expect_refused("a tensor is of expert 4, but there are 4 experts", [&] {
    held("tp=2,ep=2", Box{{0, 8}}, {{}, {{"ep", PinTo::expert, {}, 4}}, {}}, {0, -1, 4});
  });
  expect_refused("a layout lists 2 stages, but its mesh has pp 2 and vpp 2", [&] {
    held("pp=2,vpp=2", Box{{0, 8}}, {}, {0, 0, -1}, Stages{{1, 1}});
  });
}

}  // namespace
}  // namespace remesh
