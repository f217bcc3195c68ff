#include "remesh/plan/panels.hpp"

#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remesh/schema/runs.hpp"

namespace remesh {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Panels, ATensorThatFitsIsOnePanel) {
  EXPECT_THAT(panels(Box{{0, 8}, {0, 4}}, 2, 64), ElementsAre(Box{{0, 8}, {0, 4}}));
}

TEST(Panels, WholeRowsAreTakenWhereARowFits) {
  EXPECT_THAT(panels(Box{{0, 5}, {0, 4}}, 2, 16),
              ElementsAre(Box{{0, 2}, {0, 4}}, Box{{2, 4}, {0, 4}}, Box{{4, 5}, {0, 4}}));
}

TEST(Panels, ARowThatDoesNotFitIsCutItself) {
  EXPECT_THAT(panels(Box{{0, 2}, {0, 5}}, 4, 12),
              ElementsAre(Box{{0, 1}, {0, 3}}, Box{{0, 1}, {3, 5}}, Box{{1, 2}, {0, 3}},
                          Box{{1, 2}, {3, 5}}));
}

TEST(Panels, AScalarIsOnePanelAndNothingIsNone) {
  EXPECT_THAT(panels(Box{}, 4, 4), ElementsAre(Box{}));
  EXPECT_THAT(panels(Box{{0, 3}, {0, 0}}, 4, 4), IsEmpty());
}

TEST(Panels, CutsOfTheLastDimFallOnPages) {
  const auto cut = panels(Box{{0, 10000}}, 1, 9000);
  EXPECT_THAT(cut, ElementsAre(Box{{0, 8192}}, Box{{8192, 10000}}));
}

// What the executor relies on: whichever way a tensor was cut into pieces, a panel's part of a
// piece is one run of that piece's packed bytes. And panels cover each element exactly once.
TEST(Panels, CoverOnceAndMeetEveryPieceInOneRun) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 engine(seed);
    const auto draw = [&](Index low, Index high) {
      return std::uniform_int_distribution<Index>(low, high)(engine);
    };
    Box extent = Box::of_ndim(static_cast<std::size_t>(draw(1, 4)));
    Box piece = extent;
    for (int dim = 0; dim < extent.ndim(); ++dim) {
      extent[dim] = {0, draw(1, 6)};
      const Index begin = draw(0, extent[dim].end - 1);
      piece[dim] = {begin, draw(begin + 1, extent[dim].end)};
    }
    const Index element_bytes = draw(1, 8);
    const Index max_bytes = element_bytes * draw(1, 40);
    Index elements = 0;
    for (const Box& panel : panels(extent, element_bytes, max_bytes)) {
      elements += panel.num_elements();
      EXPECT_TRUE(contains(extent, panel));
      EXPECT_LE(panel.num_elements() * element_bytes, max_bytes);
      if (const auto part = intersect(panel, piece)) {
        EXPECT_TRUE(contiguous_in(piece, *part, element_bytes).has_value())
            << to_string(*part) << " in " << to_string(piece);
      }
    }
    EXPECT_EQ(elements, extent.num_elements());
  }
}

}  // namespace
}  // namespace remesh
