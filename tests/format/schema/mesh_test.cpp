#include "remesh/schema/mesh.hpp"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "arbitrary.hpp"
#include "remesh/core/error.hpp"

namespace remesh {
namespace {

TEST(Mesh, WithoutAxesIsOneRank) {
  EXPECT_EQ(Mesh().num_ranks(), 1);
  EXPECT_EQ(Mesh().size("tp"), 1);
  EXPECT_EQ(Mesh().coordinate(0, "tp"), 0);
  EXPECT_EQ(describe(Mesh()), "1 rank");
}

TEST(Mesh, CountsItsFirstAxisFastest) {
  const Mesh mesh({{"tp", 2}, {"dp", 3}, {"pp", 2}});
  struct Row {
    Rank rank;
    Index tp, dp, pp;
  };
  // clang-format off
  const Row rows[] = {
      { 0, 0, 0, 0}, { 1, 1, 0, 0},
      { 2, 0, 1, 0}, { 3, 1, 1, 0},
      { 4, 0, 2, 0}, { 5, 1, 2, 0},
      { 6, 0, 0, 1}, { 7, 1, 0, 1},
      { 8, 0, 1, 1}, { 9, 1, 1, 1},
      {10, 0, 2, 1}, {11, 1, 2, 1},
  };
  // clang-format on
  EXPECT_EQ(mesh.num_ranks(), 12);
  for (const Row& row : rows) {
    SCOPED_TRACE("rank " + std::to_string(row.rank));
    EXPECT_EQ(mesh.coordinate(row.rank, "tp"), row.tp);
    EXPECT_EQ(mesh.coordinate(row.rank, "dp"), row.dp);
    EXPECT_EQ(mesh.coordinate(row.rank, "pp"), row.pp);
    EXPECT_EQ(mesh.coordinate(row.rank, "ep"), 0) << "an axis that the mesh does not have";
  }
}

TEST(Mesh, PutsTheRankOfItsCommentWhereItSays) {
  const Mesh mesh({{"tp", 8}, {"dp", 4}, {"pp", 2}});
  EXPECT_EQ(mesh.num_ranks(), 64);
  EXPECT_EQ(mesh.coordinate(9, "tp"), 1);
  EXPECT_EQ(mesh.coordinate(9, "dp"), 1);
  EXPECT_EQ(mesh.coordinate(9, "pp"), 0);
}

TEST(Mesh, HasADifferentPlaceForEachRank) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Mesh mesh = test::Arbitrary(seed).mesh();
    std::set<std::vector<Index>> places;
    for (Rank rank = 0; rank < mesh.num_ranks(); ++rank) {
      std::vector<Index> place;
      for (const Axis& axis : mesh.axes()) {
        place.push_back(mesh.coordinate(rank, axis.name));
        ASSERT_LT(place.back(), axis.size);
      }
      places.insert(place);
    }
    ASSERT_EQ(static_cast<Index>(places.size()), mesh.num_ranks());
  }
}

void expect_refused(const std::vector<Axis>& axes, const std::string& message) {
  try {
    const Mesh mesh(axes);
    FAIL() << "accepted " << describe(mesh);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    EXPECT_EQ(error.what(), message);
  }
}

TEST(Mesh, RefusesAxesThatMakeNoMesh) {
  expect_refused({{"tp", 2}, {"dp", 1}, {"tp", 2}}, "cannot build a mesh: axis 'tp' stands twice");
  expect_refused({{"tp", 0}},
                 "cannot build a mesh: axis 'tp' has size 0, but a size is at least 1");
  expect_refused({{"tp", -2}},
                 "cannot build a mesh: axis 'tp' has size -2, but a size is at least 1");
}

TEST(Mesh, HasAtMostTwoToTheThirtyOneRanks) {
  EXPECT_EQ(Mesh({{"tp", Index{1} << 16}, {"dp", Index{1} << 15}}).num_ranks(), Index{1} << 31);
  expect_refused({{"tp", Index{1} << 16}, {"dp", (Index{1} << 15) + 1}},
                 "cannot build a mesh: with axis 'dp' of size 32769 it has more than 2147483648 "
                 "ranks");
  expect_refused({{"tp", Index{1} << 62}, {"dp", Index{1} << 62}},
                 "cannot build a mesh: with axis 'tp' of size 4611686018427387904 it has more "
                 "than 2147483648 ranks");
}

TEST(Mesh, IsDescribedWithItsRanksAndTheirOrder) {
  EXPECT_EQ(describe(Mesh({{"tp", 2}, {"cp", 1}, {"dp", 1}, {"pp", 2}})),
            "tp=2,cp=1,dp=1,pp=2 (4 ranks, order tp-cp-dp-pp)");
  EXPECT_EQ(describe(Mesh({{"tp", 1}})), "tp=1 (1 rank, order tp)");
}

}  // namespace
}  // namespace remesh
