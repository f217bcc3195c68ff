#include "safetensors/shard_names.hpp"

#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hf_files.hpp"
#include "remesh/core/error.hpp"

namespace remesh::safetensors {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Names = std::set<std::string>;

std::string shard(int number, int count) {
  return fmt::format("model-{:05}-of-{:05}.safetensors", number, count);
}

// "2 of 3 from FIRST: NAME NAME"
std::string told(const Names& chosen, const Names& beside = {}) {
  const auto sets = cut_sets(chosen, beside);
  if (sets.empty()) return "";
  return fmt::format("{} of {} from {}: {}", sets[0].absent, sets[0].count, sets[0].first,
                     fmt::join(sets[0].names, " "));
}

TEST(ShardNames, OneOfElevenIsCutAndTheFirstFewOfTheOthersAreNamed) {
  EXPECT_EQ(told({shard(1, 11)}), fmt::format("10 of 11 from {}: {} {} {}", shard(1, 11),
                                              shard(2, 11), shard(3, 11), shard(4, 11)));
}

TEST(ShardNames, TheOneThatIsAbsentIsNamedWhereverItStands) {
  for (int absent = 1; absent <= 4; ++absent) {
    Names names;
    for (int k = 1; k <= 4; ++k) {
      if (k != absent) names.insert(shard(k, 4));
    }
    EXPECT_EQ(told(names), fmt::format("1 of 4 from {}: {}", *names.begin(), shard(absent, 4)));
    EXPECT_EQ(told(names, {shard(absent, 4)}), "") << "it lies beside them";
  }
}

TEST(ShardNames, WhatIsAllThereIsFineFromOneAndFromZero) {
  EXPECT_EQ(told({shard(1, 1)}), "");
  EXPECT_EQ(told({shard(1, 2), shard(2, 2)}), "");
  EXPECT_EQ(told({shard(0, 2), shard(1, 2)}), "");
  EXPECT_EQ(told({shard(0, 2), shard(2, 2)}),
            fmt::format("1 of 2 from {}: {}", shard(0, 2), shard(1, 2)));
}

TEST(ShardNames, NumbersCountAndNotTheirDigits) {
  EXPECT_EQ(told({"part-1-of-2.safetensors", "part-02-of-2.safetensors"}), "");
  EXPECT_EQ(told({"part-1-of-12.safetensors"}),
            "11 of 12 from part-1-of-12.safetensors: part-2-of-12.safetensors "
            "part-3-of-12.safetensors part-4-of-12.safetensors");
}

TEST(ShardNames, NamesThatSayNoSuchThing) {
  const Names names{"model.safetensors",
                    "model-00001-of-00002.bin",
                    "model-00003-of-00002.safetensors",
                    "model-00001-of-0000000002.safetensors",
                    "model-1-of-.safetensors",
                    "model--of-2.safetensors",
                    "model-1-of--2.safetensors",
                    "model-a-of-2.safetensors",
                    "1-of-2.safetensors",
                    "-of-2.safetensors",
                    "best-of-00002.safetensors",
                    "of.safetensors"};
  for (const std::string& name : names) EXPECT_EQ(told({name}), "") << name;
}

TEST(ShardNames, SetsOfOtherStemsAndCountsStandByThemselves) {
  const Names names{shard(1, 2), shard(2, 2), shard(1, 3), "other-00002-of-00003.safetensors"};
  EXPECT_THAT(cut_sets(names), SizeIs(2));
  EXPECT_THAT(cut_sets({shard(1, 2), shard(2, 2)}, {shard(1, 3)}), IsEmpty())
      << "what nobody chose is not asked for";
}

// A name costs nothing, however many files it speaks of.
TEST(ShardNames, AHugeCountIsToldLikeAnyOther) {
  EXPECT_EQ(told({"m-1-of-999999999.safetensors"}),
            "999999998 of 999999999 from m-1-of-999999999.safetensors: "
            "m-2-of-999999999.safetensors m-3-of-999999999.safetensors "
            "m-4-of-999999999.safetensors");
}

TEST(ShardNames, AreToldWithBothNumbersAndRefused) {
  CollectedFindings findings;
  report_cut_sets(cut_sets({shard(3, 11)}), findings);
  ASSERT_THAT(findings.all, SizeIs(1));
  EXPECT_EQ(test::ids(findings.all), "error RM203");
  EXPECT_EQ(findings.all[0].file, shard(3, 11));
  EXPECT_EQ(findings.all[0].found, "1 files");
  EXPECT_EQ(findings.all[0].expected, "11 files");
  EXPECT_THAT(findings.all[0].message, HasSubstr("by its name it is one of 11 files, but 10 of "
                                                 "them are absent: model-00001-of-00011"));
  EXPECT_THAT(findings.all[0].message, HasSubstr("model-00004-of-00011.safetensors and 7 more;"));
  StrictFindings strict;
  EXPECT_THROW(report_cut_sets(cut_sets({shard(3, 11)}), strict), Error);
}

}  // namespace
}  // namespace remesh::safetensors
