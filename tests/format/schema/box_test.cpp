#include "remesh/schema/box.hpp"

#include <set>
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
using ::testing::IsEmpty;

using Element = std::tuple<Index, Index, Index>;

// The elements of a box of three dims.
std::multiset<Element> elements(const Box& box) {
  std::multiset<Element> all;
  for (Index i = box[0].begin; i < box[0].end; ++i) {
    for (Index j = box[1].begin; j < box[1].end; ++j) {
      for (Index k = box[2].begin; k < box[2].end; ++k) all.emplace(i, j, k);
    }
  }
  return all;
}

Range any_range(test::Arbitrary& arbitrary) {
  const Index begin = arbitrary.between(0, 5);
  return {begin, arbitrary.between(begin, 6)};
}

Box any_box(test::Arbitrary& arbitrary) {
  return {any_range(arbitrary), any_range(arbitrary), any_range(arbitrary)};
}

TEST(Box, AScalarHasOneElement) {
  EXPECT_EQ(Box().num_elements(), 1);
  EXPECT_FALSE(Box().empty());
  EXPECT_EQ(to_string(Box()), "scalar");
}

TEST(Box, IsEmptyIfAnyRangeIs) {
  EXPECT_TRUE((Box{{0, 4}, {2, 2}}).empty());
  EXPECT_EQ((Box{{0, 4}, {3, 2}}).num_elements(), 0) << "a range that ends before it begins";
  EXPECT_TRUE(Box::of_ndim(2).empty());
}

TEST(Box, OfAShapeStartsAtTheOrigin) {
  const std::vector<Index> shape{3, 5};
  EXPECT_EQ(Box::whole(shape), (Box{{0, 3}, {0, 5}}));
  EXPECT_EQ(Box::whole(std::vector<Index>{}), Box());
}

TEST(Box, HasAtMostEightDims) {
  EXPECT_EQ(Box::of_ndim(8).ndim(), 8);
  try {
    Box::of_ndim(9);
    FAIL() << "made a box of nine dims";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::unsupported);
    EXPECT_STREQ(error.what(), "a tensor has at most 8 dimensions, not 9");
  }
  EXPECT_THROW((Box{{0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}}),
               Error);
  EXPECT_THROW(Box::whole(std::vector<Index>(9, 1)), Error);
}

TEST(Box, PrintsHalfOpenRanges) { EXPECT_EQ(to_string(Box{{0, 4}, {2, 8}}), "[0, 4) x [2, 8)"); }

TEST(Intersect, OfBoxesThatTouchIsNothing) {
  EXPECT_EQ(intersect(Box{{0, 4}}, Box{{4, 8}}), std::nullopt);
  EXPECT_EQ(intersect(Box{{0, 4}, {0, 2}}, Box{{2, 6}, {2, 4}}), std::nullopt);
}

TEST(Intersect, OfScalarsIsTheScalar) { EXPECT_EQ(intersect(Box(), Box()), Box()); }

TEST(Intersect, IsWhatBothHave) {
  EXPECT_EQ(intersect(Box{{0, 4}, {1, 9}}, Box{{2, 6}, {0, 3}}), (Box{{2, 4}, {1, 3}}));
}

TEST(Subtract, PeelsOffWhatLiesBeforeAndAfterTheHole) {
  EXPECT_THAT(subtract(Box{{0, 6}, {0, 4}}, Box{{2, 4}, {1, 4}}),
              ElementsAre(Box{{0, 2}, {0, 4}}, Box{{4, 6}, {0, 4}}, Box{{2, 4}, {0, 1}}));
}

TEST(Subtract, LeavesNothingOfABoxThatIsAllHole) {
  EXPECT_THAT(subtract(Box{{0, 6}, {0, 4}}, Box{{0, 6}, {0, 4}}), IsEmpty());
  EXPECT_THAT(subtract(Box(), Box()), IsEmpty());
}

TEST(Contains, EveryEmptyBox) {
  EXPECT_TRUE(contains(Box{{0, 4}}, Box{{9, 9}}));
  EXPECT_TRUE(contains(Box{{0, 0}}, Box{{0, 0}}));
}

TEST(Contains, NoBoxThatSticksOut) {
  EXPECT_TRUE(contains(Box{{0, 4}, {2, 6}}, Box{{1, 4}, {2, 6}}));
  EXPECT_FALSE(contains(Box{{0, 4}, {2, 6}}, Box{{1, 4}, {1, 6}}));
  EXPECT_FALSE(contains(Box{{0, 4}, {2, 6}}, Box{{1, 5}, {2, 6}}));
}

// Counted element by element, so it shares no code with the boxes.
TEST(Box, AlgebraIsThatOfSetsOfElements) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Arbitrary arbitrary(seed);
    const Box a = any_box(arbitrary);
    const Box b = any_box(arbitrary);
    const auto in_a = elements(a);
    const auto in_b = elements(b);
    ASSERT_EQ(static_cast<std::size_t>(a.num_elements()), in_a.size());
    ASSERT_EQ(contains(a, b), std::ranges::includes(in_a, in_b));

    std::multiset<Element> both;
    std::ranges::set_intersection(in_a, in_b, std::inserter(both, both.end()));
    const std::optional<Box> shared = intersect(a, b);
    ASSERT_EQ(shared ? elements(*shared) : std::multiset<Element>{}, both);
    if (!shared) continue;

    std::multiset<Element> left;
    std::multiset<Element> expected;
    const std::vector<Box> rest = subtract(a, *shared);
    for (const Box& box : rest) left.merge(elements(box));
    std::ranges::set_difference(in_a, both, std::inserter(expected, expected.end()));
    ASSERT_EQ(left, expected);
    ASSERT_LE(rest.size(), 6U);
  }
}

}  // namespace
}  // namespace remesh
