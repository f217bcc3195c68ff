#include "remesh/execute/selection.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remesh/core/error.hpp"

namespace remesh {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Catalog model() {
  Catalog catalog;
  catalog.tensors = {{"a.weight", DType::bf16, Box{{0, 4}}},
                     {"a.weight@exp_avg", DType::f32, Box{{0, 4}}},
                     {"b.weight", DType::f32, Box{{0, 2}}},
                     {"b.weight@exp_avg", DType::f32, Box{{0, 2}}},
                     {"ids", DType::i64, Box{{0, 2}}}};
  catalog.digests.resize(5);
  const Split rows{.dim = 0, .over = {"tp"}};
  catalog.layout = Layout(Mesh({{"tp", 2}}), {{}, {{rows}, {}}},
                          {{1, -1}, {1, -1}, {0, -1}, {0, -1}, {0, -1}}, {});
  catalog.packaging.files = {{"model.safetensors", {}, {}}, {"optimizer.safetensors", {}, {}}};
  catalog.packaging.file_of = {0, 1, 0, 1, 0};
  catalog.side = {{"config.json", 2, {}}, {"trainer_state.json", 2, {}}};
  return catalog;
}

std::vector<std::string> names_of(const Catalog& catalog) {
  std::vector<std::string> names;
  for (const TensorDesc& tensor : catalog.tensors) names.push_back(tensor.name);
  return names;
}

TEST(Selection, ByDefaultChangesNothing) {
  Catalog catalog = model();
  const Left left = apply({}, catalog);
  EXPECT_EQ(names_of(catalog), names_of(model()));
  EXPECT_EQ(catalog.digests.size(), 5U);
  EXPECT_THAT(left.tensors, IsEmpty());
}

TEST(Selection, APatternForAParameterStandsForItsStates) {
  Catalog catalog = model();
  const Left left = apply({.include = {"a.*"}}, catalog);
  EXPECT_THAT(names_of(catalog), ElementsAre("a.weight", "a.weight@exp_avg"));
  EXPECT_THAT(left.tensors,
              ElementsAre(Dropped{"b.weight", "--include"},
                          Dropped{"b.weight@exp_avg", "--include"}, Dropped{"ids", "--include"}));
  EXPECT_EQ(left.bytes, 8 + 8 + 16);

  catalog = model();
  apply({.exclude = {"a.weight"}}, catalog);
  EXPECT_THAT(names_of(catalog), ElementsAre("b.weight", "b.weight@exp_avg", "ids"));
  catalog = model();
  apply({.exclude = {"*@exp_avg"}}, catalog);
  EXPECT_THAT(names_of(catalog), ElementsAre("a.weight", "b.weight", "ids"));
}

TEST(Selection, WhatIsKeptKeepsItsPlacementAndItsFile) {
  Catalog catalog = model();
  apply({.exclude = {"b.weight", "a.weight@*"}}, catalog);
  EXPECT_THAT(names_of(catalog), ElementsAre("a.weight", "ids"));
  EXPECT_EQ(catalog.layout.placement(0).splits.size(), 1U);
  EXPECT_EQ(catalog.layout.placement(1).splits.size(), 0U);
  EXPECT_THAT(catalog.packaging.file_of, ElementsAre(0U, 0U));
  EXPECT_THAT(catalog.digests, IsEmpty()) << "the target records its own";
}

TEST(Selection, WeightsOnlyLeavesTheTrainingOut) {
  Catalog catalog = model();
  const Left left = apply({.weights_only = true}, catalog);
  EXPECT_THAT(names_of(catalog), ElementsAre("a.weight", "b.weight", "ids"));
  EXPECT_THAT(left.side, ElementsAre(Dropped{"trainer_state.json", "--weights-only"}));
  ASSERT_EQ(catalog.side.size(), 1U);
  EXPECT_EQ(catalog.side[0].name, "config.json");
}

TEST(Selection, CastsParametersThatAreFloatsAndNoStates) {
  Catalog catalog = model();
  const Left left = apply({.dtype = DType::f16}, catalog);
  EXPECT_EQ(left.cast_tensors, 2);
  std::vector<DType> dtypes;
  for (const TensorDesc& tensor : catalog.tensors) dtypes.push_back(tensor.dtype);
  EXPECT_THAT(dtypes, ElementsAre(DType::f16, DType::f32, DType::f16, DType::f32, DType::i64));
  catalog = model();
  EXPECT_EQ(apply({.dtype = DType::f32}, catalog).cast_tensors, 1) << "one is f32 already";
}

void expect_refused(const Selection& selection, Errc code) {
  Catalog catalog = model();
  try {
    apply(selection, catalog);
    FAIL() << "accepted it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
  }
}

TEST(Selection, PlacementsThatNobodyHasAnyMoreAreGone) {
  Catalog catalog = model();
  apply({.include = {"b.weight"}}, catalog);
  EXPECT_EQ(catalog.layout.placements().size(), 1U);
}

TEST(Selection, ACastThatLeavesAParameterWithoutItsMasterIsRefused) {
  Catalog catalog;
  catalog.tensors = {{"w", DType::bf16, Box{{0, 4}}},
                     {"w@master", DType::f32, Box{{0, 4}}},
                     {"w@exp_avg", DType::f32, Box{{0, 4}}},
                     {"norm", DType::f32, Box{{0, 4}}},
                     {"norm@exp_avg", DType::f32, Box{{0, 4}}}};
  catalog.layout = Layout::replicated(Mesh(), catalog.tensors.size());
  try {
    apply({.dtype = DType::bf16}, catalog);
    FAIL() << "accepted what no reader would take";
  } catch (const Error& error) {
    EXPECT_EQ(error.id(), "RM309");
  }
}

TEST(Selection, RefusesPatternsThatMatchNothing) {
  expect_refused({.include = {"a.*", "x"}}, Errc::invalid_argument);
  expect_refused({.exclude = {"x"}}, Errc::invalid_argument);
}

TEST(Selection, RefusesWhatNoReaderWouldTake) {
  Catalog catalog = model();
  catalog.tensors[3].name = "a.weight@exp_avg_sq";
  catalog.tensors[3].extent = Box{{0, 4}};
  catalog.tensors.push_back({"b.weight@exp_avg", DType::f32, Box{{0, 2}}});
  catalog.tensors.push_back({"b.weight@exp_avg_sq", DType::f32, Box{{0, 2}}});
  catalog.layout = Layout::replicated(Mesh(), catalog.tensors.size());
  catalog.packaging = {};
  Catalog whole = catalog;
  apply({.exclude = {"*@exp_avg_sq"}}, whole);
  try {
    apply({.exclude = {"a.weight@exp_avg_sq"}}, catalog);
    FAIL() << "accepted it";
  } catch (const Error& error) {
    EXPECT_EQ(error.id(), "RM309");
  }
}

TEST(Selection, RefusesToLeaveNothingAndDtypesWithoutValues) {
  expect_refused({.exclude = {"*"}}, Errc::invalid_argument);
  expect_refused({.include = {"*@exp_avg"}}, Errc::invalid_argument);
  expect_refused({.dtype = DType::f8_e4m3}, Errc::unsupported);
  expect_refused({.dtype = DType::i64}, Errc::unsupported);
}

}  // namespace
}  // namespace remesh
