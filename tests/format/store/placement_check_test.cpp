#include "placement_check.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remesh/schema/pieces.hpp"

namespace remesh::native {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Query, key and value of one matrix: each of two ranks has half of the queries' rows, and both
// share one group of keys and values. So rank 0 holds [0, 4) and [8, 12), rank 1 [4, 12): the boxes
// overlap, and are cut.
class PlacementCheckTest : public ::testing::Test {
 protected:
  PlacementCheckTest() {
    catalog_.tensors = {{"qkv", DType::bf16, Box{{0, 12}, {0, 2}}}};
    const std::vector<Part> parts{{.size = 8, .groups = 4},
                                  {.size = 2, .groups = 1, .beyond = Beyond::share},
                                  {.size = 2, .groups = 1, .beyond = Beyond::share}};
    catalog_.layout =
        Layout(Mesh({{"tp", 2}}),
               std::vector<Placement>{{.splits = {{.dim = 0, .over = {"tp"}, .parts = parts}}}},
               std::vector<Placed>{{}}, Stages());
  }

  // What is said against ranks that store rows [begin, end), as copy 0.
  std::vector<std::string> complaints(
      const std::vector<std::pair<Rank, std::pair<Index, Index>>>& rows,
      const std::vector<Rank>& unread = {}) const {
    std::vector<Extent> extents;
    std::int64_t offset = 0;
    for (const auto& [rank, range] : rows) {
      Extent extent;
      extent.rank = rank;
      extent.file = static_cast<std::uint32_t>(rank);
      extent.box = Box{{range.first, range.second}, {0, 2}};
      extent.offset_bytes = offset;
      extent.length_bytes = num_bytes(DType::bf16, extent.box);
      offset += extent.length_bytes;
      extents.push_back(extent);
    }
    CollectedFindings findings;
    const ExtentMap map({{"shard-0", 1000}, {"shard-1", 1000}}, std::move(extents));
    check_placement(catalog_, map, unread, Complaints(findings, "ckpt"));
    std::vector<std::string> said;
    for (const Finding& finding : findings.all) {
      said.push_back(finding.id + " " + to_string(*finding.box) + ": " + finding.message);
    }
    return said;
  }

  Catalog catalog_;
};

TEST_F(PlacementCheckTest, RanksHoldWhatIsSaidHere) {
  const Pieces pieces(catalog_.layout, catalog_.tensors);
  EXPECT_THAT(pieces.on(0, 0), ElementsAre(Box{{0, 4}, {0, 2}}, Box{{8, 12}, {0, 2}}));
  EXPECT_THAT(pieces.on(0, 1), ElementsAre(Box{{4, 12}, {0, 2}}));
}

TEST_F(PlacementCheckTest, OurOwnCutIsAllowed) {
  EXPECT_THAT(complaints({{0, {0, 4}}, {1, {4, 8}}, {0, {8, 12}}}), IsEmpty());
  EXPECT_THAT(complaints({{0, {0, 4}}, {1, {4, 8}}, {1, {8, 12}}}), IsEmpty());
}

TEST_F(PlacementCheckTest, AnyOtherCutThatCrossesNoBorderIsAllowed) {
  EXPECT_THAT(complaints({{0, {0, 4}}, {1, {4, 5}}, {1, {5, 8}}, {0, {8, 9}}, {1, {9, 12}}}),
              IsEmpty());
}

TEST_F(PlacementCheckTest, APartThatCrossesABorderIsRefused) {
  EXPECT_THAT(complaints({{0, {0, 4}}, {1, {4, 7}}, {1, {7, 9}}, {1, {9, 12}}}),
              ElementsAre(StartsWith("RM304 [7, 9) x [0, 2)")));
}

TEST_F(PlacementCheckTest, ABoxThatIsNotInDisputeIsAPieceAsItIs) {
  EXPECT_THAT(
      complaints({{0, {0, 2}}, {0, {2, 4}}, {1, {4, 8}}, {0, {8, 12}}}),
      ElementsAre(StartsWith("RM304 [0, 2) x [0, 2)"), StartsWith("RM304 [2, 4) x [0, 2)")));
}

TEST_F(PlacementCheckTest, APartOnARankThatDoesNotHoldItIsRefused) {
  EXPECT_THAT(complaints({{0, {0, 4}}, {1, {4, 5}}, {0, {5, 8}}, {0, {8, 12}}}),
              ElementsAre(StartsWith("RM304 [5, 8) x [0, 2)")));
}

// As many elements as there are, but not the same ones.
TEST_F(PlacementCheckTest, PartsThatOverlapAreRefused) {
  EXPECT_THAT(complaints({{0, {0, 4}}, {1, {4, 7}}, {1, {6, 8}}, {0, {8, 11}}}),
              ElementsAre(AllOf(StartsWith("RM304 [6, 7) x [0, 2)"),
                                HasSubstr("two pieces of copy 0 hold it")),
                          StartsWith("RM301 [11, 12) x [0, 2)")));
}

TEST_F(PlacementCheckTest, ABoxInDisputeThatIsStoredUncutMustNotDoubleAnother) {
  EXPECT_THAT(complaints({{0, {0, 4}}, {0, {8, 12}}, {1, {4, 12}}}),
              ElementsAre(AllOf(StartsWith("RM304 [8, 12) x [0, 2)"),
                                HasSubstr("two pieces of copy 0 hold it"))));
}

TEST_F(PlacementCheckTest, AHoleBetweenPartsIsNamed) {
  EXPECT_THAT(complaints({{0, {0, 4}}, {1, {4, 5}}, {1, {6, 8}}, {0, {8, 12}}}),
              ElementsAre(StartsWith("RM301 [5, 6) x [0, 2)")));
}

// What a shard that nobody could read may have held is no hole; the rest is.
TEST_F(PlacementCheckTest, HolesAreToldBesideAShardThatIsMissing) {
  EXPECT_THAT(complaints({{0, {8, 12}}}, {1}), ElementsAre(StartsWith("RM301 [0, 4) x [0, 2)")));
}

}  // namespace
}  // namespace remesh::native
