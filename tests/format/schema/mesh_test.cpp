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

// On paper: 12 ranks, tp 2, dp 3, pp 2; for the experts etp 1, ep 2, edp 3, pp 2.
TEST(Mesh, CountsBothGridsOverTheSameRanks) {
  const Mesh mesh({{"tp", 2}, {"dp", 3}, {"pp", 2}},
                  {{"etp", 1}, {"ep", 2}, {"edp", 3}, {"pp", 2}});
  EXPECT_EQ(mesh.num_ranks(), 12);
  for (Rank rank = 0; rank < 12; ++rank) {
    EXPECT_EQ(mesh.coordinate(rank, "tp"), rank % 2);
    EXPECT_EQ(mesh.coordinate(rank, "ep"), rank % 2);
    EXPECT_EQ(mesh.coordinate(rank, "dp"), rank / 2 % 3);
    EXPECT_EQ(mesh.coordinate(rank, "edp"), rank / 2 % 3);
    EXPECT_EQ(mesh.coordinate(rank, "pp"), rank / 6);
    EXPECT_EQ(mesh.first_along("edp", rank), rank - rank / 2 % 3 * 2);
    EXPECT_EQ(mesh.first_along("pp", rank), rank % 6);
  }
}

TEST(Mesh, WithoutAGridForThemExpertsLieAsAllElse) {
  const Mesh mesh({{"tp", 2}, {"cp", 2}, {"dp", 3}});
  EXPECT_EQ(mesh.size("etp"), 2);
  EXPECT_EQ(mesh.size("ep"), 1);
  EXPECT_EQ(mesh.size("edp"), 6);
  EXPECT_EQ(mesh.coordinate(7, "etp"), 1);
  EXPECT_EQ(mesh.coordinate(7, "edp"), 3) << "cp 1, dp 1: cp counts faster";
  EXPECT_EQ(mesh.first_along("edp", 7), 1);
}

TEST(Mesh, RefusesGridsThatDoNotFitEachOther) {
  const auto refused = [](const std::vector<Axis>& dense, const std::vector<Axis>& experts,
                          Index vpp, const char* message) {
    try {
      const Mesh mesh(dense, experts, vpp);
      ADD_FAILURE() << "accepted " << describe(mesh);
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), std::string("cannot build a mesh: ") + message);
    }
  };
  refused({{"tp", 4}}, {{"ep", 3}}, 1, "tp=4 is 4 ranks, but the experts' grid ep=3 is 3");
  refused({{"tp", 2}, {"pp", 2}}, {{"ep", 4}}, 1, "pp is 2, but in the experts' grid it is 1");
  refused({{"tp", 2}, {"pp", 2}}, {{"pp", 2}, {"ep", 2}}, 1,
          "the next stage is 2 ranks on in order tp-pp, but 1 in the experts' order pp-ep; both "
          "grids must have the same pipelines");
  refused({{"tp", 2}}, {{"tp", 2}}, 1, "axis 'tp' stands in both grids");
  refused({{"pp", 2}}, {}, 0, "vpp is 0, but a whole number from 1 to 16384 is expected");
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
  EXPECT_EQ(describe(Mesh({{"tp", 2}, {"dp", 2}, {"pp", 2}},
                          {{"etp", 1}, {"ep", 2}, {"edp", 2}, {"pp", 2}}, 2)),
            "tp=2,dp=2,pp=2,vpp=2; etp=1,ep=2,edp=2 (8 ranks, order tp-dp-pp; etp-ep-edp-pp)");
}

}  // namespace
}  // namespace remesh
