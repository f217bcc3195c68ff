#include "remesh/schema/coverage.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arbitrary.hpp"
#include "numbered_tensor.hpp"

namespace remesh {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Cover, FindsNothingWrongWithAPartition) {
  EXPECT_TRUE(cover(Box{}, std::vector<Box>{Box{}}).exact());
  EXPECT_TRUE(cover(Box{{0, 4}}, std::vector<Box>{Box{{2, 4}}, Box{{0, 2}}}).exact());
  EXPECT_TRUE(cover(Box{{0, 0}}, {}).exact()) << "nothing is what it takes";
  EXPECT_TRUE(cover(Box{{0, 4}}, std::vector<Box>{Box{{0, 4}}, Box{{2, 2}}}).exact());
}

TEST(Cover, NamesTheExactBoxes) {
  EXPECT_THAT(cover(Box{}, {}).missing, ElementsAre(Box{}));
  EXPECT_THAT(cover(Box{}, std::vector<Box>{Box{}, Box{}}).doubled, ElementsAre(Box{}));
  // Rows 0 to 3 of 4, columns 0 and 1; rows 2 to 5, columns 1 and 2.
  const Coverage found =
      cover(Box{{0, 6}, {0, 3}}, std::vector<Box>{Box{{0, 4}, {0, 2}}, Box{{2, 6}, {1, 3}}});
  EXPECT_THAT(found.doubled, ElementsAre(Box{{2, 4}, {1, 2}}));
  EXPECT_THAT(found.missing, ElementsAre(Box{{0, 2}, {2, 3}}, Box{{4, 6}, {0, 1}}));
}

TEST(Cover, CountsEveryElementAsItIs) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Arbitrary arbitrary(seed);
    const TensorDesc desc{"w", DType::u8, arbitrary.extent()};
    std::vector<Box> pieces;
    if (arbitrary.chance(50)) pieces = arbitrary.panels(desc.extent);
    if (arbitrary.chance(50) && !pieces.empty()) pieces.pop_back();
    for (Index more = arbitrary.between(0, 3); more > 0; --more)
      pieces.push_back(arbitrary.part(desc));

    std::vector<int> counts(static_cast<std::size_t>(desc.extent.num_elements()));
    for (const Box& piece : pieces) {
      test::for_each_element(desc.extent, piece,
                             [&](Index place) { ++counts[static_cast<std::size_t>(place)]; });
    }
    const Coverage found = cover(desc.extent, pieces);
    std::vector<int> missing(counts.size());
    std::vector<int> doubled(counts.size());
    const auto mark = [&](const std::vector<Box>& boxes, std::vector<int>& marks) {
      for (const Box& box : boxes) {
        ASSERT_FALSE(box.empty());
        test::for_each_element(desc.extent, box,
                               [&](Index place) { ++marks[static_cast<std::size_t>(place)]; });
      }
    };
    mark(found.missing, missing);
    mark(found.doubled, doubled);
    for (std::size_t place = 0; place < counts.size(); ++place) {
      ASSERT_EQ(missing[place], counts[place] == 0 ? 1 : 0) << "place " << place;
      ASSERT_EQ(doubled[place], counts[place] > 1 ? 1 : 0) << "place " << place;
    }
  }
}

// A quadratic way would take minutes.
TEST(Cover, OfManyPiecesOfAGridOrALineIsQuick) {
  constexpr Index side = 300;
  std::vector<Box> grid;
  std::vector<Box> line;
  for (Index k = 0; k < side * side; ++k) {
    grid.push_back({{k / side, k / side + 1}, {k % side, k % side + 1}});
    line.push_back({{0, 1}, {k, k + 1}});
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(cover(Box{{0, side}, {0, side}}, grid).exact());
  EXPECT_TRUE(cover(Box{{0, 1}, {0, side * side}}, line).exact());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

}  // namespace
}  // namespace remesh
