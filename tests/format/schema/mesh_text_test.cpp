#include "remesh/schema/mesh_text.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remesh/core/error.hpp"
#include "remesh/schema/near_miss.hpp"

namespace remesh {
namespace {

using ::testing::StrEq;

Mesh mesh_of(std::vector<Axis> axes) { return Mesh(std::move(axes)); }

struct Good {
  const char* text;
  std::vector<Axis> axes;  // in rank order, fastest first
  const char* shortest;    // what to_text makes of it
};

TEST(ParseMesh, ReadsTheAxesInRankOrder) {
  // clang-format off
  const std::vector<Good> table{
      {"tp=2,pp=3",                        {{"tp", 2}, {"cp", 1}, {"dp", 1}, {"pp", 3}},  "tp=2,pp=3"},
      {"pp=3,tp=2",                        {{"tp", 2}, {"cp", 1}, {"dp", 1}, {"pp", 3}},  "tp=2,pp=3"},
      {"dp=16,pp=4,tp=8,cp=2",             {{"tp", 8}, {"cp", 2}, {"dp", 16}, {"pp", 4}}, "tp=8,cp=2,dp=16,pp=4"},
      {"tp=1",                             {{"tp", 1}, {"cp", 1}, {"dp", 1}, {"pp", 1}},  "tp=1"},
      {"dp=1,cp=1",                        {{"tp", 1}, {"cp", 1}, {"dp", 1}, {"pp", 1}},  "tp=1"},
      {"tp=2,vpp=1",                       {{"tp", 2}, {"cp", 1}, {"dp", 1}, {"pp", 1}},  "tp=2"},
      {"tp=2,pp=2,order=pp-tp-cp-dp",      {{"pp", 2}, {"tp", 2}, {"cp", 1}, {"dp", 1}},  "tp=2,pp=2,order=pp-tp-cp-dp"},
      {"order=tp-cp-ep-dp-pp,tp=2",        {{"tp", 2}, {"cp", 1}, {"dp", 1}, {"pp", 1}},  "tp=2"},
      {"tp=2,dp=2,order=ep-dp-pp-tp-cp",   {{"dp", 2}, {"pp", 1}, {"tp", 2}, {"cp", 1}},  "tp=2,dp=2,order=dp-pp-tp-cp"},
      {"order=dp-pp-tp-cp",                {{"dp", 1}, {"pp", 1}, {"tp", 1}, {"cp", 1}},  "order=dp-pp-tp-cp"},
      {"dp=2147483648",                    {{"tp", 1}, {"cp", 1}, {"dp", 2147483648}, {"pp", 1}}, "dp=2147483648"},
  };
  // clang-format on
  for (const Good& good : table) {
    SCOPED_TRACE(good.text);
    EXPECT_EQ(parse_mesh(good.text), mesh_of(good.axes));
    EXPECT_EQ(to_text(mesh_of(good.axes)), good.shortest);
  }
}

TEST(ParseMesh, GivesExpertsAGridWhereEpOrEtpIsSaid) {
  struct Row {
    const char* text;
    std::vector<Axis> experts;
    const char* shortest;
  };
  // clang-format off
  const Row rows[] = {
      {"tp=2,dp=4,ep=4", {{"etp", 1}, {"ep", 4}, {"edp", 2}, {"pp", 1}}, "tp=2,dp=4,ep=4"},
      {"tp=2,dp=4,ep=2,etp=2,pp=3", {{"etp", 2}, {"ep", 2}, {"edp", 2}, {"pp", 3}}, "tp=2,dp=4,pp=3,ep=2,etp=2"},
      {"tp=2,ep=1", {{"etp", 1}, {"ep", 1}, {"edp", 2}, {"pp", 1}}, "tp=2,ep=1"},
      {"tp=2,etp=2", {{"etp", 2}, {"ep", 1}, {"edp", 1}, {"pp", 1}}, "tp=2,ep=1,etp=2"},
      {"tp=2,cp=3,dp=4,ep=6", {{"etp", 1}, {"ep", 6}, {"edp", 4}, {"pp", 1}}, "tp=2,cp=3,dp=4,ep=6"},
      {"dp=4,ep=2,order=tp-cp-dp-ep-pp", {{"etp", 1}, {"edp", 2}, {"ep", 2}, {"pp", 1}}, "dp=4,ep=2,order=tp-cp-dp-ep-pp"},
      {"dp=4,ep=2,pp=2,order=dp-ep-tp-cp-pp", {{"edp", 2}, {"ep", 2}, {"etp", 1}, {"pp", 2}}, "dp=4,pp=2,ep=2,order=dp-ep-tp-cp-pp"},
      {"pp=2,dp=4,ep=2,order=pp-tp-cp-dp", {{"pp", 2}, {"etp", 1}, {"ep", 2}, {"edp", 2}}, "dp=4,pp=2,ep=2,order=pp-tp-cp-ep-dp"},
  };
  // clang-format on
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    const Mesh mesh = parse_mesh(row.text);
    EXPECT_THAT(mesh.expert_axes(), ::testing::ElementsAreArray(row.experts));
    EXPECT_EQ(to_text(mesh), row.shortest);
    EXPECT_EQ(parse_mesh(row.shortest), mesh);
  }
  EXPECT_EQ(parse_mesh("same,tp=4", parse_mesh("tp=2,dp=4,ep=4")), parse_mesh("tp=4,dp=4,ep=4"));
  EXPECT_EQ(parse_mesh("same,pp=1", parse_mesh("pp=2,vpp=3")), parse_mesh("pp=1"));
  EXPECT_EQ(parse_mesh("same,pp=4", parse_mesh("pp=2,vpp=3")), parse_mesh("pp=4,vpp=3"));
  EXPECT_EQ(to_text(parse_mesh("pp=4,vpp=3")), "pp=4,vpp=3");
}

TEST(ParseMesh, SameKeepsWhatIsNotSaid) {
  const Mesh same = parse_mesh("tp=2,dp=3,order=dp-tp-cp-pp");
  EXPECT_EQ(parse_mesh("same", same), same);
  EXPECT_EQ(parse_mesh("same,tp=4", same), parse_mesh("tp=4,dp=3,order=dp-tp-cp-pp"));
  EXPECT_EQ(parse_mesh("same,dp=1", same), parse_mesh("tp=2,order=dp-tp-cp-pp"));
  EXPECT_EQ(parse_mesh("same,order=tp-cp-dp-pp", same), parse_mesh("tp=2,dp=3"));
  EXPECT_EQ(parse_mesh("tp=4", same), parse_mesh("tp=4")) << "only `same` asks for it";
}

TEST(ParseMesh, SameOfAMeshThatLacksAxesPutsThemInTheirPlace) {
  EXPECT_EQ(parse_mesh("same,cp=2", mesh_of({{"pp", 2}, {"tp", 3}})),
            mesh_of({{"pp", 2}, {"tp", 3}, {"cp", 2}, {"dp", 1}}));
  EXPECT_EQ(parse_mesh("same,tp=2", mesh_of({{"dp", 4}})),
            mesh_of({{"tp", 2}, {"cp", 1}, {"dp", 4}, {"pp", 1}}));
  EXPECT_EQ(parse_mesh("same"), parse_mesh("tp=1"));
}

struct Bad {
  std::string text;
  const char* message;
  Errc code = Errc::invalid_argument;
};

TEST(ParseMesh, SaysWhatIsWrong) {
  // clang-format off
  const std::vector<Bad> table{
      {"",                  "cannot read mesh '': it is empty; write for example tp=2,pp=2"},
      {"hf",                "`--mesh` takes a mesh; for a format say `--to hf`"},
      {"megatron-dist",     "`--mesh` takes a mesh; for a format say `--to megatron-dist`"},
      {"tpp=2",             "cannot read mesh 'tpp=2': unknown axis 'tpp'; did you mean 'tp'?"},
      {"pt=2",              "cannot read mesh 'pt=2': unknown axis 'pt'; did you mean 'tp'?"},
      {"TP=2",              "cannot read mesh 'TP=2': unknown axis 'TP'; the axes are tp, cp, dp, pp, ep and etp"},
      {"ordre=tp-cp-dp-pp", "cannot read mesh 'ordre=tp-cp-dp-pp': unknown axis 'ordre'; did you mean 'order'?"},
      {"tensor=2",          "cannot read mesh 'tensor=2': unknown axis 'tensor'; the axes are tp, cp, dp, pp, ep and etp"},
      {"8",                 "cannot read mesh '8': unknown axis '8'; the axes are tp, cp, dp, pp, ep and etp"},
      {"tp",                "cannot read mesh 'tp': tp has no value, but tp=SIZE is expected"},
      {"order",             "cannot read mesh 'order': order has no value, but order=tp-cp-dp-pp is expected"},
      {"tp=2,tp=4",         "cannot read mesh 'tp=2,tp=4': tp is given twice"},
      {"tp=2,,pp=2",        "cannot read mesh 'tp=2,,pp=2': a comma has nothing beside it"},
      {"tp=2,",             "cannot read mesh 'tp=2,': a comma has nothing beside it"},
      {"tp=2,same",         "cannot read mesh 'tp=2,same': 'same' is not its first word"},
      {"tp=",               "cannot read mesh 'tp=': tp is '', but a whole number from 1 to 2147483648 is expected"},
      {"tp=0",              "cannot read mesh 'tp=0': tp is '0', but a whole number from 1 to 2147483648 is expected"},
      {"tp=-2",             "cannot read mesh 'tp=-2': tp is '-2', but a whole number from 1 to 2147483648 is expected"},
      {"tp=+2",             "cannot read mesh 'tp=+2': tp is '+2', but a whole number from 1 to 2147483648 is expected"},
      {"tp=2.5",            "cannot read mesh 'tp=2.5': tp is '2.5', but a whole number from 1 to 2147483648 is expected"},
      {"tp= 2",             "cannot read mesh 'tp= 2': tp is ' 2', but a whole number from 1 to 2147483648 is expected"},
      {"tp=2147483649",     "cannot read mesh 'tp=2147483649': tp is '2147483649', but a whole number from 1 to 2147483648 is expected"},
      {"tp=18446744073709551618", "cannot read mesh 'tp=18446744073709551618': tp is '18446744073709551618', but a whole number from 1 to 2147483648 is expected"},
      {"order=tp-dp-pp",    "cannot read mesh 'order=tp-dp-pp': order 'tp-dp-pp' leaves out cp, but it must name each of tp, cp, dp, pp once"},
      {"order=",            "cannot read mesh 'order=': order '' names the unknown axis ''"},
      {"order=ep",          "cannot read mesh 'order=ep': order 'ep' leaves out tp, cp, dp, pp, but it must name each of tp, cp, dp, pp once"},
      {"order=tp-cp-dp-pp-tp", "cannot read mesh 'order=tp-cp-dp-pp-tp': order 'tp-cp-dp-pp-tp' names tp twice"},
      {"order=tp-cp-ddp-pp", "cannot read mesh 'order=tp-cp-ddp-pp': order 'tp-cp-ddp-pp' names the unknown axis 'ddp'; did you mean 'dp'?"},
      {"order=tp-cp-dp-pp,order=tp-cp-dp-pp", "cannot read mesh 'order=tp-cp-dp-pp,order=tp-cp-dp-pp': order is given twice"},
      {"tp=2,ep=8",         "cannot read mesh 'tp=2,ep=8': the experts share the 2 ranks of tp*cp*dp, which etp 1 * ep 8 does not divide; the nearest legal value is ep=2"},
      {"dp=6,ep=4",         "cannot read mesh 'dp=6,ep=4': the experts share the 6 ranks of tp*cp*dp, which etp 1 * ep 4 does not divide; the nearest legal values are ep=3 and ep=6"},
      {"dp=6,ep=2,etp=2",   "cannot read mesh 'dp=6,ep=2,etp=2': the experts share the 6 ranks of tp*cp*dp, which etp 2 * ep 2 does not divide; the nearest legal values are ep=1 and ep=3"},
      {"etp=2",             "cannot read mesh 'etp=2': the experts share the 1 ranks of tp*cp*dp, which etp 2 * ep 1 does not divide; the nearest legal value is etp=1"},
      {"vpp=2",             "cannot build a mesh: vpp is 2, but pp is 1; virtual stages are for pipelines of 2 and more"},
      {"tp=2,dp=2,pp=2,ep=4,order=tp-pp-dp-cp-ep", "cannot build a mesh: the next stage is 2 ranks on in order tp-pp-dp-cp, but 1 in the experts' order etp-pp-edp-ep; both grids must have the same pipelines"},
      {std::string(81, 'x'), "cannot read mesh 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...': unknown axis 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'; the axes are tp, cp, dp, pp, ep and etp"},
  };
  // clang-format on
  for (const Bad& bad : table) {
    SCOPED_TRACE(bad.text);
    try {
      parse_mesh(bad.text);
      ADD_FAILURE() << "was read";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), StrEq(bad.message));
      EXPECT_EQ(error.code(), bad.code);
    }
  }
}

TEST(ParseMesh, RefusesMoreRanksThanAMeshHas) {
  EXPECT_THROW(parse_mesh("tp=65536,dp=65536"), Error);
}

TEST(ToText, RefusesAxesThatHaveNoNameThere) {
  EXPECT_THROW(to_text(mesh_of({{"tp", 2}, {"row", 2}})), Error);
  // Neither place of ep among tp, cp, dp, pp makes dp come before tp for the experts alone.
  EXPECT_THROW(to_text(Mesh({{"tp", 2}, {"dp", 2}}, {{"edp", 2}, {"etp", 2}, {"ep", 1}})), Error);
  EXPECT_EQ(to_text(mesh_of({{"tp", 2}, {"row", 1}})), "tp=2");
}

TEST(ToText, IsReadBackToTheSameMesh) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::vector<Axis> axes{{"tp", 1}, {"cp", 1}, {"dp", 1}, {"pp", 1}};
    for (Axis& axis : axes) axis.size = std::max(1, static_cast<int>(random() % 9) - 3);
    if (seed % 2 == 0) std::shuffle(axes.begin(), axes.end(), random);
    const Mesh mesh(axes);
    const Mesh other = parse_mesh("tp=7,pp=5");

    EXPECT_EQ(parse_mesh(to_text(mesh)), mesh) << to_text(mesh);
    EXPECT_EQ(parse_mesh("same", mesh), mesh);
    EXPECT_EQ(parse_mesh(to_text(mesh), other), mesh) << "the text needs no other mesh";
  }
}

TEST(NearMiss, CountsOneForEachSlipOfAFinger) {
  EXPECT_EQ(typing_errors("", ""), 0U);
  EXPECT_EQ(typing_errors("shape", "shape"), 0U);
  EXPECT_EQ(typing_errors("shape", "shpe"), 1U) << "left out";
  EXPECT_EQ(typing_errors("shape", "shappe"), 1U) << "put in";
  EXPECT_EQ(typing_errors("shape", "shade"), 1U) << "exchanged";
  EXPECT_EQ(typing_errors("shape", "sahpe"), 1U) << "swapped";
  EXPECT_EQ(typing_errors("shape", "split"), 4U);
  EXPECT_EQ(typing_errors("abc", ""), 3U);
}

TEST(NearMiss, TakesTheNearestAndNothingFar) {
  const std::vector<std::string_view> words{"dim", "groups", "group"};
  EXPECT_EQ(near_miss("grous", words), "groups") << "the first of equals";
  EXPECT_EQ(near_miss("grup", words), "group");
  EXPECT_EQ(near_miss("grouped", words), "groups") << "two of six letters";
  EXPECT_EQ(near_miss("dm", words), "dim");
  EXPECT_EQ(near_miss("dots", words), std::nullopt);
  EXPECT_EQ(near_miss(std::string(65, 'g'), words), std::nullopt);
}

}  // namespace
}  // namespace remesh
