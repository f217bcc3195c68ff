// What a model map can say of tensors that are more than a matrix: parts, blocks and their scales,
// stacked and separate experts, layers of two kinds.

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lying.hpp"
#include "remesh/core/error.hpp"
#include "remesh/models/model_map.hpp"
#include "remesh/schema/mesh_text.hpp"

namespace remesh {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* head = R"(
[model]
name = "m"
layers = "layers"
experts = "experts"
active_experts = 1
[sizes]
layers  = "n"
experts = 4
hidden  = 8
dense   = {key = "dense", default = 0, zero = true}
mtp     = {key = "outer.mtp", default = 0, zero = true}
block   = {flag = "small", then = 2, otherwise = 4}
twice   = {default = "2 * hidden"}
[flags]
small   = {present = "quantised"}
)";

std::vector<std::string> names_of(const std::string& tensors, const char* config) {
  std::vector<std::string> names;
  const ModelMap map = ModelMap::parse(head + tensors, "m.toml");
  for (const TensorDesc& tensor : map.needed_tensors(config, DType::u8)) {
    names.push_back(tensor.name + " " + to_string(tensor.extent));
  }
  return names;
}

TEST(MapKeys, SizesComeFromFlagsObjectsAndEachOther) {
  const std::string one =
      "[[tensor]]\nname = 'w'\nshape = ['block', 'twice', 'hidden // 3', '1 + mtp']\n";
  EXPECT_THAT(names_of(one, R"({"n": 1})"), ElementsAre("w [0, 4) x [0, 16) x [0, 3) x [0, 1)"));
  EXPECT_THAT(names_of(one, R"({"n": 1, "quantised": {}, "outer": {"mtp": 2}})"),
              ElementsAre("w [0, 2) x [0, 16) x [0, 3) x [0, 3)"));
  EXPECT_THAT(names_of(one, R"({"n": 1, "quantised": null})"),
              ElementsAre("w [0, 4) x [0, 16) x [0, 3) x [0, 1)"));
}

TEST(MapKeys, LayersMayBeOfTwoKinds) {
  const std::string two =
      "[[tensor]]\nname = 'h.{layer}.mlp'\nshape = [2]\nlayers = [0, 'dense']\n"
      "[[tensor]]\nname = 'h.{layer}.experts.{expert}'\nshape = [3]\nlayers = ['dense', "
      "'layers']\n";
  EXPECT_THAT(names_of(two, R"({"n": 2, "dense": 1})"),
              ElementsAre("h.0.mlp [0, 2)", "h.1.experts.0 [0, 3)", "h.1.experts.1 [0, 3)",
                          "h.1.experts.2 [0, 3)", "h.1.experts.3 [0, 3)"));
  const ModelMap map = ModelMap::parse(head + two, "m.toml");
  const char* const config = R"({"n": 2, "dense": 1})";
  std::vector<TensorDesc> tensors = map.needed_tensors(config, DType::u8);
  EXPECT_EQ(map.place(tensors, config, Mesh()).placed()[1], (Placed{1, 1, 0}));
  tensors[0].name = "h.1.mlp";
  try {
    (void)map.place(tensors, config, Mesh());
    ADD_FAILURE() << "layer 1 has none of that kind";
  } catch (const Error& error) {
    EXPECT_EQ(error.id(), "RM310");
    EXPECT_THAT(error.what(), HasSubstr("cannot place 'h.1.mlp': by the map of model 'm' layers 0 "
                                        "to 0 have such a tensor, and 1 has not"));
  }
}

TEST(MapKeys, ConditionsMayBeSeveral) {
  const std::string some =
      "[[tensor]]\nname = 'a'\nshape = [1]\nneeded = ['small', '!small']\n"
      "[[tensor]]\nname = 'b'\nshape = [1]\nneeded = ['small', true]\n"
      "[[tensor]]\nname = 'c'\nshape = [1]\n";
  EXPECT_THAT(names_of(some, R"({"n": 1})"), ElementsAre("c [0, 1)"));
  EXPECT_THAT(names_of(some, R"({"n": 1, "quantised": 1})"), ElementsAre("b [0, 1)", "c [0, 1)"));
}

// What each rank of a mesh has of the map's only tensor.
std::vector<std::string> held(const std::string& split, const Box& extent, const char* mesh) {
  const ModelMap map =
      ModelMap::parse(head + std::string("[[tensor]]\nname = 'w'\nsplit = ") + split, "m.toml");
  const std::vector<TensorDesc> tensors{{"w", DType::u8, extent}};
  const Layout layout = map.place(tensors, R"({"n": 1})", parse_mesh(mesh));
  return test::held_by_ranks(layout, tensors, 0);
}

TEST(MapKeys, SplitsReachEveryPlacement) {
  EXPECT_THAT(
      held("{dim = 0, parts = [{size = 'hidden'}, {size = 'hidden', groups = 2, share = true}]}",
           Box{{0, 16}}, "tp=4"),
      ElementsAre("[0, 2) + [8, 12)", "[2, 4) + [8, 12)", "[4, 6) + [12, 16)",
                  "[6, 8) + [12, 16)"));
  EXPECT_THAT(held("{dim = 0, block = 'block'}", Box{{0, 10}}, "tp=2"),
              ElementsAre("[0, 8)", "[8, 10)"));
  EXPECT_THAT(held("{dim = 0, groups = 2, divide = true, rule = 'chunk'}", Box{{0, 10}}, "tp=4"),
              ElementsAre("[0, 3)", "[3, 6)", "[6, 9)", "[9, 10)"));
  EXPECT_THAT(held("{dim = 0, sizes = [1, 'hidden', 0]}", Box{{0, 9}}, "tp=3"),
              ElementsAre("[0, 1)", "[1, 9)", "-"));
  EXPECT_THAT(
      held("[{dim = 0, over = ['ep'], groups = 'experts'}, {dim = 1, over = ['etp']}]",
           Box{{0, 4}, {0, 2}}, "dp=4,ep=2,etp=2"),
      ElementsAre("[0, 2) x [0, 1)", "[0, 2) x [1, 2)", "[2, 4) x [0, 1)", "[2, 4) x [1, 2)"));
}

TEST(MapKeys, WeightsAndScalesAreInTheSameBlocks) {
  const std::string two =
      "[[tensor]]\nname = 'w'\nshape = [10, 'hidden']\nblocks = ['block', 'block']\nsplit = {dim = "
      "0}\n"
      "[[tensor]]\nname = 's'\nshape = ['10 // block', 'hidden // block']\nblocks = ['block', "
      "'block']\n"
      "of = [10, 'hidden']\nsplit = {dim = 0}\n";
  const ModelMap map = ModelMap::parse(head + two, "m.toml");
  const std::vector<TensorDesc> tensors = map.needed_tensors(R"({"n": 1})", DType::u8);
  const Layout layout = map.place(tensors, R"({"n": 1})", parse_mesh("tp=2"));
  EXPECT_EQ(test::box_on(layout, tensors, 0, 0), (Box{{0, 8}, {0, 8}}));
  EXPECT_EQ(test::box_on(layout, tensors, 1, 0), (Box{{0, 2}, {0, 2}}));
  EXPECT_EQ(test::box_on(layout, tensors, 1, 1), (Box{{2, 3}, {0, 2}}));
  try {
    (void)map.place({&tensors[1], 1}, R"({"n": 1})", parse_mesh("tp=2"));
    ADD_FAILURE() << "a scale was placed without its weight";
  } catch (const Error& error) {
    EXPECT_EQ(error.id(), "RM302");
    EXPECT_THAT(error.what(), HasSubstr("1 tensor is absent: 'w'"));
  }
}

TEST(MapKeys, SayWhatIsWrong) {
  struct Row {
    const char* split;
    const char* message;
  };
  // clang-format off
  const Row rows[] = {
      {"{dim = 0, share = true}", "'share' is true, but there are no 'groups' to share"},
      {"{dim = 0, divide = true}", "'divide' is true, but there are no 'groups' to divide"},
      {"{dim = 0, groups = 2, share = true, divide = true}", "'share' and 'divide' exclude each other"},
      {"{dim = 0, groups = 2, parts = [{size = 1}, {size = 2}]}", "'groups' and 'parts' exclude each other"},
      {"{dim = 0, parts = [{size = 1}]}", "there are 1 'parts', but from 2 to 64 are possible"},
      {"{dim = 0, parts = [{size = 1}, {groups = 2}]}", "a part has no 'size'"},
      {"{dim = 0, sizes = [1, 2], rule = 'chunk'}", "'sizes' leave nothing to 'groups', 'block' and 'rule'"},
      {"{dim = 0, groups = 2, rule = 'chunk'}", "'groups' are always dealt evenly"},
  };
  // clang-format on
  for (const Row& row : rows) {
    SCOPED_TRACE(row.split);
    try {
      (void)held(row.split, Box{{0, 8}}, "tp=2");
      ADD_FAILURE() << "was read";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      EXPECT_THAT(error.what(), HasSubstr(row.message));
    }
  }
  const auto expect_refused = [](const std::string& more, const char* message) {
    try {
      (void)names_of(more, R"({"n": 2, "dense": 3})");
      ADD_FAILURE() << "was read: " << message;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(message));
    }
  };
  expect_refused("[[tensor]]\nname = 'w'\nof = [4]",
                 "there is 'of', but no 'blocks' that have a scale each");
  expect_refused("[[tensor]]\nname = 'w'\nshape = [4, 4]\nblocks = [2]",
                 "'blocks' and 'of' have one number for each of 2 dims");
  expect_refused("[[tensor]]\nname = 'w'\nlayers = [0, 1]",
                 "there are 'layers', but the name has no {layer}");
  expect_refused("[[tensor]]\nname = 'w.{layer}'\nlayers = [0]",
                 "'layers' is not the first and the one behind the last");
  expect_refused("[[tensor]]\nname = 'w.{layer}'\nshape = [1]\nlayers = ['dense', 'layers']",
                 "layers 3 to 2 of 2 have 'w.0'");
}

}  // namespace
}  // namespace remesh
