#include "remesh/schema/placement.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remesh/core/error.hpp"

namespace remesh {
namespace {

using ::testing::ElementsAre;

Split over(int dim, std::vector<std::string> axes) {
  Split split;
  split.dim = dim;
  split.over = std::move(axes);
  return split;
}

Split grouped(Split split, Index groups, const std::string& unit, Beyond beyond = Beyond::refuse) {
  split.groups = groups;
  split.beyond = beyond;
  split.unit = unit;
  return split;
}

Split listed(Split split, std::vector<Index> sizes) {
  split.rule = SplitRule::sizes;
  split.sizes = std::move(sizes);
  return split;
}

std::vector<Index> parts(const Split& split, Range range, Index count) {
  std::vector<Index> all;
  Index end = range.begin;
  for (Index at = 0; at < count; ++at) {
    const Range part = split_range(split, range, count, at);
    EXPECT_EQ(part.begin, end) << "part " << at << " does not begin where the one before ends";
    end = part.end;
    all.push_back(part.size());
  }
  EXPECT_EQ(end, range.end);
  return all;
}

TEST(SplitRange, FollowsItsRule) {
  struct Row {
    SplitRule rule;
    Index total;
    std::vector<Index> sizes;
  };
  // clang-format off
  const Row rows[] = {
      {SplitRule::balanced, 12, {3, 3, 3, 3}},
      {SplitRule::balanced, 10, {3, 3, 2, 2}},
      {SplitRule::balanced,  5, {2, 1, 1, 1}},
      {SplitRule::balanced,  3, {1, 1, 1, 0}},
      {SplitRule::balanced,  0, {0, 0, 0, 0}},
      {SplitRule::balanced,  7, {7}},
      {SplitRule::chunk,    12, {3, 3, 3, 3}},
      {SplitRule::chunk,    10, {3, 3, 3, 1}},
      {SplitRule::chunk,     9, {3, 3, 3, 0}},
      {SplitRule::chunk,     5, {2, 2, 1, 0}},
      {SplitRule::chunk,     4, {1, 1, 1, 1}},
      {SplitRule::chunk,     0, {0, 0, 0, 0}},
      {SplitRule::sizes,    10, {4, 0, 5, 1}},
      {SplitRule::sizes,     0, {0, 0}},
  };
  // clang-format on
  for (const Row& row : rows) {
    SCOPED_TRACE(row.total);
    Split split = over(0, {"tp"});
    split.rule = row.rule;
    if (row.rule == SplitRule::sizes) split = listed(split, row.sizes);
    const auto count = std::ssize(row.sizes);
    EXPECT_EQ(parts(split, {0, row.total}, count), row.sizes);
    EXPECT_EQ(parts(split, {100, 100 + row.total}, count), row.sizes) << "away from the origin";
  }
}

// Four heads of three elements.
TEST(SplitRange, KeepsGroupsWhole) {
  const Split heads = grouped(over(0, {"tp"}), 4, "attention heads");
  EXPECT_THAT(parts(heads, {0, 12}, 1), ElementsAre(12));
  EXPECT_THAT(parts(heads, {0, 12}, 2), ElementsAre(6, 6));
  EXPECT_THAT(parts(heads, {0, 12}, 4), ElementsAre(3, 3, 3, 3));
  EXPECT_EQ(split_range(heads, {20, 32}, 4, 1), (Range{23, 26}));
}

TEST(SplitRange, LetsNeighboursShareAGroupWhereThereAreTooFew) {
  const Split kv = grouped(over(0, {"tp"}), 2, "KV heads", Beyond::share);
  const std::vector<Range> expected{{0, 6}, {0, 6}, {0, 6}, {6, 12}, {6, 12}, {6, 12}};
  for (Index at = 0; at < 6; ++at) {
    EXPECT_EQ(split_range(kv, {0, 12}, 6, at), expected[static_cast<std::size_t>(at)]);
  }
  EXPECT_EQ(split_range(kv, {0, 12}, 1, 0), (Range{0, 12}))
      << "and does not where there are enough";
  EXPECT_EQ(split_range(kv, {0, 12}, 2, 1), (Range{6, 12}));
}

void expect_refused(const Split& split, Index total, Index count, const std::string& message) {
  try {
    split_range(split, {0, total}, count, 0);
    FAIL() << "split " << total << " over " << count;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    EXPECT_EQ(error.what(), message);
  }
}

TEST(SplitRange, RefusesGroupsThatCannotBeDivided) {
  const Split heads = grouped(over(1, {"tp"}), 4, "attention heads");
  expect_refused(heads, 12, 8, "4 attention heads cannot be divided over tp 8");
  expect_refused(heads, 10, 2, "dim 1 has 10 elements, which 4 attention heads do not divide");
  const Split shared = grouped(over(0, {"tp", "cp"}), 4, "", Beyond::share);
  expect_refused(shared, 12, 6, "4 groups cannot be divided over tp*cp 6");
  expect_refused(shared, 12, 3, "4 groups cannot be divided over tp*cp 3");
}

TEST(SplitRange, RefusesSizesWhoseSumOverflows) {
  const Split wraps = listed(over(0, {"tp"}), {8, INT64_MAX, INT64_MAX, 2});
  expect_refused(
      wraps, 8, 4,
      "dim 0 has 8 elements over 4 coordinates, but 4 sizes are listed that add up to -1");
}

TEST(SplitRange, RefusesSizesThatDoNotFit) {
  const Split two = listed(over(2, {"pp"}), {4, 6});
  expect_refused(two, 11, 2,
                 "dim 2 has 11 elements over 2 coordinates, but 2 sizes are listed that add up to "
                 "10");
  expect_refused(two, 10, 3,
                 "dim 2 has 10 elements over 3 coordinates, but 2 sizes are listed that add up to "
                 "10");
}

TEST(Placement, IsDescribedInWords) {
  const Pin layer{"pp", PinTo::layer, {}};
  EXPECT_EQ(to_string(Placement{}), "replicated");
  EXPECT_EQ(to_string(Placement{{over(0, {"tp"})}, {}}), "split dim 0 over tp");
  EXPECT_EQ(to_string(Placement{{over(1, {"dp", "cp"}), over(0, {"tp"})},
                                {{"pp", PinTo::coordinates, {0, 3}}}}),
            "split dim 1 over dp*cp, split dim 0 over tp, pinned to pp 0+3");
  EXPECT_EQ(to_string(Placement{{}, {layer}}), "pinned to its layer's pp");
  EXPECT_EQ(to_string(Placement{{}, {{"pp", PinTo::first, {}}}}), "pinned to the first pp");
  EXPECT_EQ(to_string(Placement{{}, {{"pp", PinTo::last, {}}}}), "pinned to the last pp");
  EXPECT_EQ(to_string(Placement{{}, {{"pp", PinTo::ends, {}}}}), "pinned to the first and last pp");
}

}  // namespace
}  // namespace remesh
