#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dense_store.hpp"
#include "diff_of.hpp"
#include "remesh/core/error.hpp"
#include "remesh/verify/diff.hpp"

// Single cases of what differs, and names that belong together.

namespace remesh {
namespace {

using test::Dense;
using test::diff_of;
using test::put_bits;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Dense of_words(std::string name, DType dtype, const std::vector<std::uint64_t>& words) {
  Dense tensor{{std::move(name), dtype, Box{{0, std::ssize(words)}}}, {}};
  tensor.bytes.resize(static_cast<std::size_t>(num_bytes(tensor.desc)));
  for (std::size_t i = 0; i < words.size(); ++i) {
    put_bits(tensor, static_cast<Index>(i), words[i]);
  }
  return tensor;
}

TensorDiff only(const Dense& left, const Dense& right, const Tolerance& tolerance = {}) {
  const Diff found = diff_of({left}, {right}, {{}, {}, tolerance});
  return found.tensors.at(0);
}

TEST(Diff, OneUlpOfBf16) {
  const auto found = only(of_words("w", DType::bf16, {0x3f80, 0x3f80, 0x4000}),
                          of_words("w", DType::bf16, {0x3f80, 0x3f81, 0x4000}));
  EXPECT_EQ(found.likeness, Likeness::different);
  EXPECT_EQ(found.differing, 1);
  EXPECT_EQ(found.max_ulps, 1U);
  EXPECT_EQ(found.max_absolute, 0.0078125);
  EXPECT_EQ(found.mean_absolute, 0.0078125 / 3);
  EXPECT_THAT(found.histogram, ElementsAre(0, 1));
  ASSERT_TRUE(found.first);
  EXPECT_THAT(found.first->index, ElementsAre(1));
  EXPECT_EQ(found.first->left, "1");
  EXPECT_EQ(found.first->right, "1.0078125");
}

TEST(Diff, ZerosOfBothSignsAreNoUlpApart) {
  const Dense left = of_words("w", DType::f32, {0x0000'0000});
  const Dense right = of_words("w", DType::f32, {0x8000'0000});
  const auto found = only(left, right);
  EXPECT_EQ(found.likeness, Likeness::different) << "their bits differ";
  EXPECT_THAT(found.histogram, ElementsAre(1));
  EXPECT_EQ(found.max_ulps, 0U);
  EXPECT_FALSE(found.relative_l2.has_value()) << "of nothing";
  EXPECT_EQ(only(left, right, {.absolute = 0.0}).likeness, Likeness::within);
}

TEST(Diff, NanIsEqualToItselfAlone) {
  const std::uint64_t nan = 0x7fc0'0000;
  EXPECT_EQ(only(of_words("w", DType::f32, {nan}), of_words("w", DType::f32, {nan})).likeness,
            Likeness::equal);
  const Tolerance wide{.absolute = 1e300, .relative = 1.0, .ulps = ~std::uint64_t{0}};
  const auto found = only(of_words("w", DType::f32, {nan, nan, 0x7f80'0000, 0x3f80'0000}),
                          of_words("w", DType::f32, {nan + 1, 0, 0, 0x3f80'0000}), wide);
  EXPECT_EQ(found.likeness, Likeness::different) << "within no tolerance";
  EXPECT_EQ(found.nans, 2);
  EXPECT_EQ(found.infinite, 1);
  EXPECT_EQ(found.beyond, 3);
  EXPECT_EQ(found.not_finite, 3);
  EXPECT_FALSE(found.cosine.has_value()) << "of what is no number";
  EXPECT_THAT(found.histogram, IsEmpty());
  EXPECT_EQ(found.first->left, "nan");
}

TEST(Diff, NoFigureIsToldBesideWhatIsNotFinite) {
  const std::uint64_t one = 0x3f80'0000;
  for (const std::uint64_t wild : {0x7fc0'0000U, 0xff80'0000U}) {
    // Equal on both sides, or on one side alone.
    for (const std::uint64_t other : {wild, one}) {
      SCOPED_TRACE(wild + other);
      const auto found = only(of_words("w", DType::f32, {one, wild, one}),
                              of_words("w", DType::f32, {one + 3, other, one}));
      EXPECT_EQ(found.not_finite, 1);
      EXPECT_EQ(found.differing, other == wild ? 1 : 2);
      EXPECT_FALSE(found.max_ulps.has_value());
      EXPECT_FALSE(found.max_absolute.has_value());
      EXPECT_FALSE(found.mean_absolute.has_value());
      EXPECT_FALSE(found.relative_l2.has_value());
      EXPECT_FALSE(found.cosine.has_value());
      EXPECT_THAT(found.histogram, ElementsAre(0, 0, 1)) << "what is finite is counted";
    }
  }
}

TEST(Diff, DtypesMustBeTheSameUnlessValuesAreAskedFor) {
  const Dense narrow = of_words("w", DType::bf16, {0x3f80, 0x7f80, 0xffff, 0xff80});
  const Dense wide =
      of_words("w", DType::f32, {0x3f80'0000, 0x7f80'0000, 0x7fc0'0000, 0xff80'0000});
  const auto strict = only(narrow, wide);
  EXPECT_EQ(strict.likeness, Likeness::different);
  EXPECT_EQ(strict.differing, 0);
  EXPECT_EQ(only(narrow, wide, {.ulps = 0}).likeness, Likeness::within);
  const Dense other = of_words("w", DType::f32, {0x3f80'0001, 0x7f80'0000, 0, 0x7f80'0000});
  const auto found = only(narrow, other, {.ulps = 1});
  EXPECT_EQ(found.differing, 3) << "a number, NaN, and the sign of an infinity";
  EXPECT_EQ(found.beyond, 2);
  EXPECT_THAT(found.histogram, ElementsAre(0, 1)) << "one ulp of f32";
}

TEST(Diff, IntegersOfAllSizesAreSubtractedExactly) {
  const auto found = only(of_words("step", DType::u64, {0, 12000}),
                          of_words("step", DType::u64, {~std::uint64_t{0}, 12001}));
  EXPECT_EQ(found.max_difference, ~std::uint64_t{0});
  EXPECT_FALSE(found.max_ulps.has_value());
  EXPECT_EQ(found.first->right, "18446744073709551615");
  const std::uint64_t least = std::uint64_t{1} << 63U;
  const auto wide =
      only(of_words("step", DType::i64, {least}), of_words("step", DType::i64, {least - 1}));
  EXPECT_EQ(wide.max_difference, ~std::uint64_t{0});
  EXPECT_EQ(wide.first->left, "-9223372036854775808");
}

TEST(Diff, SquaresOfLargeDoublesDoNotOverflow) {
  const std::uint64_t large = 0x7fe0'0000'0000'0000;  // 2^1023
  const auto found = only(of_words("w", DType::f64, {large, large}),
                          of_words("w", DType::f64, {large, large + 1}));
  ASSERT_TRUE(found.relative_l2);
  EXPECT_DOUBLE_EQ(*found.relative_l2, std::ldexp(1.0, -52) / std::sqrt(2.0));
  EXPECT_EQ(found.cosine, 1.0);
}

TEST(Diff, WhatCannotBeComparedIsSaid) {
  const Dense four = of_words("w", DType::f32, {1, 2, 3, 4});
  EXPECT_EQ(only(four, of_words("w", DType::f32, {1, 2, 3})).likeness, Likeness::not_compared);
  EXPECT_EQ(only(four, of_words("w", DType::u32, {1, 2, 3, 4})).likeness, Likeness::not_compared);
  EXPECT_FALSE(diff_of({four}, {of_words("w", DType::u32, {1, 2, 3, 4})}).same());
}

TEST(Diff, NamesOfOneSideAreListedInNaturalOrder) {
  const std::vector<std::string> names{"layers.10.w", "layers.2.w", "layers.1.w"};
  std::vector<Dense> left;
  for (const std::string& name : names) left.push_back(of_words(name, DType::f32, {1}));
  const Diff found = diff_of(left, {of_words("other", DType::f32, {1})});
  EXPECT_THAT(found.only_left, ElementsAre(2, 1, 0));
  EXPECT_THAT(found.only_right, ElementsAre(0));
  EXPECT_FALSE(found.same()) << "there is nothing in common";
}

TEST(Diff, PatternsChooseTensorsAndTheirStates) {
  const auto some = [](const std::string& parameter) {
    return std::vector{of_words(parameter, DType::f32, {1}),
                       of_words(parameter + "@exp_avg", DType::f32, {1}),
                       of_words("norm.weight", DType::f32, {1})};
  };
  DiffOptions options;
  options.include = {"mlp.*"};
  Diff found = diff_of(some("mlp.weight"), some("mlp.weight"), options);
  EXPECT_EQ(found.count(Likeness::equal), 2);
  EXPECT_EQ(found.left_out, 1);
  options.exclude = {"*@exp_avg"};
  EXPECT_EQ(diff_of(some("mlp.weight"), some("mlp.weight"), options).count(Likeness::equal), 1);
  found = diff_of(some("mlp.weight"), some("attn.weight"), options);
  EXPECT_THAT(found.only_left, ElementsAre(0));
  EXPECT_THAT(found.only_right, IsEmpty()) << "it is not asked for";
  options.include = {"mpl.*"};
  try {
    (void)diff_of(some("mlp.weight"), some("mlp.weight"), options);
    FAIL() << "a pattern that matches nothing was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("`--include 'mpl.*'`: no tensor of either side"));
  }
}

TEST(Diff, PatternsLeaveSomethingToCompare) {
  const Dense mlp = of_words("mlp.weight", DType::f32, {1});
  const Dense norm = of_words("norm.weight", DType::f32, {1});
  const auto refusal = [](const std::vector<Dense>& left, const std::vector<Dense>& right,
                          const DiffOptions& options) -> std::string {
    try {
      (void)diff_of(left, right, options);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      return error.what();
    }
  };
  const std::vector<Dense> both{mlp, norm};
  EXPECT_THAT(
      refusal(both, both, {.include = {"*.weight"}, .exclude = {"*.weight"}, .tolerance = {}}),
      HasSubstr("--include and --exclude leave out all 2 tensors of both sides"));
  EXPECT_THAT(refusal({mlp}, {norm}, {.include = {}, .exclude = {"*"}, .tolerance = {}}),
              HasSubstr("--exclude leaves out all 2 tensors"));
  EXPECT_EQ(refusal({mlp}, both, {.include = {}, .exclude = {"mlp*"}, .tolerance = {}}), "")
      << "the right side has one more";
  EXPECT_EQ(refusal({}, {}, {}), "") << "there is no pattern";
}

TEST(Diff, AStateIsOfItsParameterThoughOneSideLostThat) {
  const Dense weight = of_words("mlp.weight", DType::f32, {1});
  const Dense state = of_words("mlp.weight@exp_avg", DType::f32, {1});
  const Dense norm = of_words("norm.weight", DType::f32, {1});
  const auto expect = [&](const DiffOptions& options, std::int64_t equal, std::int64_t left_out) {
    for (const bool turned : {false, true}) {
      const std::vector<Dense> whole{weight, state, norm};
      const std::vector<Dense> lacking{state, norm};
      const Diff found =
          turned ? diff_of(lacking, whole, options) : diff_of(whole, lacking, options);
      EXPECT_EQ(found.count(Likeness::equal), equal) << turned;
      EXPECT_EQ(found.left_out, left_out) << turned;
    }
  };
  expect({.include = {}, .exclude = {"mlp.weight"}, .tolerance = {}}, 1, 2);
  expect({.include = {"mlp.weight"}, .exclude = {}, .tolerance = {}}, 1, 1);
  expect({.include = {}, .exclude = {"norm.weight"}, .tolerance = {}}, 1, 1);
  // Neither is of the other's side.
  DiffOptions without;
  without.exclude = {"mlp.weight"};
  const Diff apart = diff_of({weight, norm}, {state, norm}, without);
  EXPECT_THAT(apart.only_right, IsEmpty()) << "it is a state of what is left out";
  EXPECT_EQ(apart.left_out, 2);
}

// ---- Names that belong together

std::vector<Dense> model(const std::string& prefix, const std::string& layers, Index shift = 0) {
  std::vector<Dense> tensors;
  for (Index layer = 0; layer < 12; ++layer) {
    const std::string place = prefix + layers + std::to_string(layer);
    tensors.push_back({{place + ".up.weight", DType::f32, Box{{0, 4 + shift}, {0, 2}}}, {}});
    tensors.push_back({{place + ".norm.weight", DType::f32, Box{{0, 2}}}, {}});
  }
  for (Dense& tensor : tensors)
    tensor.bytes.resize(static_cast<std::size_t>(num_bytes(tensor.desc)));
  return tensors;
}

TEST(DiffHint, GuessesAPrefix) {
  EXPECT_EQ(
      diff_of(model("model.", "layers."), model("", "layers.")).hint,
      "24 of the 24 names that only the left side has are those of the right side but for "
      "'model.' at their begin: 'model.layers.0.norm.weight' would be 'layers.0.norm.weight'");
  EXPECT_THAT(diff_of(model("", "layers."), model("model.", "layers.")).hint,
              HasSubstr("with 'model.' before them"));
}

TEST(DiffHint, GuessesOtherFirstWords) {
  EXPECT_THAT(
      diff_of(model("model.", "layers."), model("transformer.", "h.")).hint,
      HasSubstr("24 of the 24 names that only the left side has are those of the right side "
                "with 'transformer.h.' in place of 'model.layers.'"));
}

TEST(DiffHint, GuessesByShapesWhereNamesHaveNothingInCommon) {
  std::vector<Dense> others = model("", "");
  for (std::size_t k = 0; k < others.size(); ++k) {
    others[k].desc.name = std::string(1, static_cast<char>('a' + k));
  }
  EXPECT_THAT(diff_of(model("model.", "layers."), others).hint,
              HasSubstr("24 of the 24 tensors that only the left side has are of the dtype and "
                        "shape of one that only the right side has"));
}

TEST(DiffHint, SaysNothingOfModelsThatHaveNothingInCommon) {
  std::vector<Dense> others = model("", "", /*shift=*/3);
  std::erase_if(others, [](const Dense& tensor) { return tensor.desc.extent.ndim() == 1; });
  EXPECT_EQ(diff_of(model("model.", "layers."), others).hint, "");
}

}  // namespace
}  // namespace remesh
