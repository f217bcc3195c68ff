#include "remesh/schema/stages.hpp"

#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remesh/core/error.hpp"

namespace remesh {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<Index> deal(const char* rule, Index layers, Index pp, Index vpp = 1) {
  return StageRule::parse(rule).deal(layers, pp, vpp).layers;
}

StageCosts costs_of(std::size_t layers, double first, double last) {
  return {std::vector<double>(layers, 1.0), first, last};
}

Stages by_cost(const StageCosts& costs, Index all) {
  StageRule rule = StageRule::parse("cost");
  rule.set_costs(costs);
  return rule.deal(std::ssize(costs.layers), all, 1);
}

// Published pipelines, and those that were got wrong; ../README says from where.
TEST(Stages, AreThoseOfPublishedModels) {
  // BLOOM: 70 layers on 12 stages, embedding and output a slot each: [E+5], 10 x [6], [5+E].
  EXPECT_THAT(deal("balanced", 70, 12), ElementsAre(5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 5));
  EXPECT_THAT(deal("Et*5|(t*6|)*10t*5L", 70, 12), ElementsAre(5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 5));
  EXPECT_THAT(deal("5,*,5", 70, 12), ElementsAre(5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 5));

  // Llama 3 405B: 126 on 16, no stage with more than 8 slots.
  const Stages llama{deal("balanced", 126, 16)};
  EXPECT_EQ(llama.num_layers(), 126);
  EXPECT_EQ(costs_of(126, 1, 1).bottleneck(llama), 8.0);

  // 30 layers on 4 stages: a framework built 28 of them.
  EXPECT_THAT(deal("even", 30, 4), ElementsAre(8, 8, 7, 7));
  EXPECT_THAT(deal("balanced", 30, 4), ElementsAre(7, 8, 8, 7));

  EXPECT_THAT(deal("even", 60, 8), ElementsAre(8, 8, 8, 8, 7, 7, 7, 7));
  const Stages sixty{deal("balanced", 60, 8)};
  EXPECT_EQ(sixty.num_layers(), 60);
  EXPECT_EQ(costs_of(60, 1, 1).bottleneck(sixty), 8.0);

  // DeepSeek-V3 on pp 16, vpp 2: 61 layers and one of multi-token prediction.
  const std::vector<Index> deepseek = deal("Et*3|(tt|)*29,m|L", 62, 16, 2);
  ASSERT_EQ(deepseek.size(), 32U);
  EXPECT_EQ(deepseek.front(), 3);
  EXPECT_EQ(deepseek[1], 2);
  EXPECT_EQ(deepseek[30], 1) << "m, alone";
  EXPECT_EQ(deepseek[31], 0) << "the loss, alone";
}

TEST(Stages, ByCostHaveTheLeastBottleneckAndAreEven) {
  // Llama-3-70B: the output costs 1.14 layers; ten layers each and the output is 11.14.
  const StageCosts llama = costs_of(80, 0, 1.14);
  EXPECT_DOUBLE_EQ(llama.bottleneck(even_stages(80, 8)), 11.14);
  const Stages dealt = by_cost(llama, 8);
  EXPECT_DOUBLE_EQ(llama.bottleneck(dealt), 11.0);
  EXPECT_EQ(dealt.num_layers(), 80);
  EXPECT_EQ(dealt.layers.back(), 9);
  EXPECT_EQ(std::ranges::min(dealt.layers), 9) << "no stage is left almost empty";

  // 8 layers on [1,2,2,3]: the heaviest stage, not the average (6792), is what must fit.
  const StageCosts weights{std::vector<double>(8, 3160), 472, 472};
  EXPECT_EQ(weights.bottleneck(Stages{{1, 2, 2, 3}}), 9952);
}

// All ways to deal, tried.
double least_bottleneck(const StageCosts& costs, Index all, std::vector<Index>& before) {
  const Index left =
      std::ssize(costs.layers) - std::accumulate(before.begin(), before.end(), Index{0});
  if (std::ssize(before) + 1 == all) {
    Stages stages{before};
    stages.layers.push_back(left);
    return costs.bottleneck(stages);
  }
  double least = std::numeric_limits<double>::infinity();
  for (Index next = 1; next <= left - (all - std::ssize(before) - 1); ++next) {
    before.push_back(next);
    least = std::min(least, least_bottleneck(costs, all, before));
    before.pop_back();
  }
  return least;
}

TEST(Stages, ByCostAreNeverWorseThanAnyOtherWay) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    StageCosts costs;
    const auto layers = 1 + random() % 10;
    for (unsigned k = 0; k < layers; ++k) costs.layers.push_back(static_cast<double>(random() % 7));
    costs.first = static_cast<double>(random() % 10);
    costs.last = static_cast<double>(random() % 10);
    const auto all = static_cast<Index>(1 + random() % layers);
    const Stages dealt = by_cost(costs, all);
    std::vector<Index> none;
    EXPECT_DOUBLE_EQ(costs.bottleneck(dealt), least_bottleneck(costs, all, none));
    EXPECT_EQ(dealt.num_layers(), std::ssize(costs.layers));
    EXPECT_GE(std::ranges::min(dealt.layers), 1);
  }
}

TEST(Stages, OfEveryRuleArePartitionsOfAllLayers) {
  for (const char* rule : {"even", "balanced", "cost", "1,*", "*,1", "*"}) {
    for (Index layers = 1; layers <= 40; ++layers) {
      for (Index pp = 1; pp <= 6; ++pp) {
        for (Index vpp = 1; vpp <= 2; ++vpp) {
          StageRule parsed = StageRule::parse(rule);
          parsed.set_costs(costs_of(static_cast<std::size_t>(layers), 0.5, 1.5));
          Stages stages;
          try {
            stages = parsed.deal(layers, pp, vpp);
          } catch (const Error& error) {
            EXPECT_EQ(error.code(), Errc::invalid_argument);
            // Too few layers for the stages, or for what is listed.
            const bool one_stage =
                pp * vpp == 1 && std::string(rule).find('1') != std::string::npos;
            EXPECT_TRUE(layers < pp * vpp || one_stage)
                << rule << " of " << layers << " on " << pp << " x " << vpp;
            continue;
          }
          ASSERT_EQ(std::ssize(stages.layers), pp * vpp);
          for (Index layer = 0; layer < layers; ++layer) {
            const Index stage = stages.stage_of(layer);
            ASSERT_TRUE(layer == 0 || stages.stage_of(layer - 1) <= stage);
          }
          ASSERT_THROW((void)stages.stage_of(layers), Error);
        }
      }
    }
  }
}

TEST(Stages, SayWhatIsWrong) {
  struct Row {
    const char* rule;
    Index layers, pp, vpp;
    const char* message;
  };
  // clang-format off
  const Row rows[] = {
      {"", 4, 2, 1, "cannot read stages '': it is empty"},
      {"evn", 4, 2, 1, "there is no such way; did you mean 'even'?"},
      {"uneven-ish", 4, 2, 1, "there is no such way; even, balanced, cost, a list such as 5,6,6,5"},
      {"2,,2", 4, 2, 1, "'' is no number of layers from 0 to"},
      {"*,*", 4, 2, 1, "'*' stands there twice"},
      {"2,3", 4, 2, 1, "its stages have 5 layers, but the model has 4"},
      {"2,2", 4, 3, 1, "it has 2 stages, but the mesh has 3 (pp * vpp)"},
      {"3,*,2", 4, 3, 1, "it leaves -1 layers to 1 stages"},
      {"even", 4, 5, 1, "cannot deal 4 layers to 5 pipeline stages: a stage would be empty; the nearest legal pp is 4"},
      {"even", 7, 3, 3, "cannot deal 7 layers to 9 pipeline stages: a stage would be empty; the nearest legal vpp is 2"},
      {"balanced", 1, 4, 1, "at most 3 are legal"},
      {"cost", 4, 2, 1, "cannot deal 4 layers by cost: no model map"},
      {"Ett|tL", 4, 2, 1, "its stages have 3 layers, but the model has 4"},
      {"Ett|tt|L", 4, 2, 1, "it has 3 stages, but the mesh has 2"},
      {"tt|ttL", 4, 2, 1, "it must begin with its only E"},
      {"Ett|Ett|L", 4, 2, 1, "it must begin with its only E"},
      {"Ett|tt", 4, 2, 1, "it must end with its only L"},
      {"EL|tttt", 4, 2, 1, "it must end with its only L"},
      {"Ettmt|L", 4, 2, 1, "an m stands before a t"},
      {"E(tt|", 4, 2, 1, "at character 6: a '(' is not closed"},
      {"Ett)|L", 4, 2, 1, "at character 4: ')' closes nothing"},
      {"Et*|L", 4, 2, 1, "at character 4: a number is expected behind *"},
      {"Etx|L", 4, 2, 1, "at character 3: E, t, m, L, |, (, ) or * is expected"},
      {"E((((t*1000)*1000)*1000)*1000)L", 4, 2, 1, "more than 1048576 layers and stages"},
      {"E((t*1000)*1000)*0((t*1000)*1000)*0((t*1000)*1000)*0((t*1000)*1000)*0((t*1000)*1000)*0((t*1000)*1000)*0((t*1000)*1000)*0((t*1000)*1000)*0((t*1000)*1000)*0((t*1000)*1000)*0((t*1000)*1000)*0((t*1000)*1000)*0((t*1000)*1000)*0((t*1000)*1000)*0((t*1000)*1000)*0((t*1000)*1000)*0((t*1000)*1000)*0L", 4, 2, 1, "it takes more than 16777216 steps to write out"},
      {"balanced", 4, 2, 1000000, "cannot deal layers to 2 x 1000000 pipeline stages: at most 16384 are possible"},
      {"E(((((((((((((((((((t)))))))))))))))))))L", 4, 2, 1, "nested too deep"},
  };
  // clang-format on
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    try {
      (void)StageRule::parse(row.rule).deal(row.layers, row.pp, row.vpp);
      ADD_FAILURE() << "was dealt";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      EXPECT_THAT(error.what(), HasSubstr(row.message));
    }
  }
}

}  // namespace
}  // namespace remesh
