#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden.hpp"
#include "job.hpp"
#include "remesh/store/memory_store.hpp"

namespace remesh {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Index rows = 8;
constexpr Index columns = 16;
constexpr std::size_t elements = rows * columns;

using Values = std::vector<float>;

// float32 matrices of one shape by their names, and a step, in one rank's memory.
struct Save {
  std::map<std::string, Values> tensors;
  float step = 0;  // 0: nobody says it

  std::unique_ptr<MemoryStore> store() const {
    test::GoldenCatalog golden(Mesh({{"tp", 1}}));
    for (const auto& [name, values] : tensors) {
      golden.add({name, DType::f32, Box{{0, rows}, {0, columns}}}, {});
    }
    if (step > 0) golden.add({tensors.begin()->first + "@step", DType::f32, Box{}}, {});
    auto made = std::make_unique<MemoryStore>(golden.take());
    std::byte* at = made->bytes(0).data();
    for (const auto& [name, values] : tensors) {
      std::memcpy(at, values.data(), values.size() * sizeof(float));
      at += values.size() * sizeof(float);
    }
    if (step > 0) std::memcpy(at, &step, sizeof step);
    return made;
  }
};

Values drawn(unsigned seed, float size = 0.02F) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, size);
  Values values(elements);
  for (float& value : values) value = normal(random);
  return values;
}

// What a step of Adam does to weights: all move by about the rate.
Values moved(Values values, float rate, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> step(-rate, rate);
  for (float& value : values) value += step(random);
  return values;
}

class SinceTest : public ::testing::Test {
 protected:
  // "RM501 warn NAME found" of each finding, ordered by id and name.
  std::vector<std::string> judge(const Save& now, const Save& before) {
    const auto later = now.store();
    const auto earlier = before.store();
    report_ = verify_since(machine_.judge(), Opener([&](Findings&) { return later->reader(); }),
                           earlier->reader(), Level::full);
    std::vector<std::string> all;
    for (const Finding& finding : report_.findings) {
      all.push_back(fmt::format("{} {} {} {}", finding.id, to_string(finding.severity),
                                finding.tensor, finding.found));
    }
    std::ranges::sort(all);
    return all;
  }

  // Three parameters with their moments at step 10, and one step later.
  void SetUp() override {
    unsigned seed = 1;
    for (const std::string name : {"a.weight", "b.weight", "c.weight"}) {
      before_.tensors[name] = drawn(seed++);
      before_.tensors[name + "@exp_avg"] = drawn(seed++, 1e-3F);
    }
    before_.step = 10;
    now_ = before_;
    now_.step = 11;
    for (auto& [name, values] : now_.tensors) values = moved(values, 1e-4F, seed++);
  }

  test::Machine machine_;
  Report report_;
  Save before_;
  Save now_;
};

TEST_F(SinceTest, AStepOfTrainingIsWell) {
  EXPECT_THAT(judge(now_, before_), IsEmpty());
  const Since since{.step = 11, .previous_step = 10, .compared = 7, .changed = 7};
  EXPECT_EQ(report_.since, since);
}

TEST_F(SinceTest, WhoHasNoStatesWhereOthersHaveThemIsFrozen) {
  before_.tensors["frozen.weight"] = now_.tensors["frozen.weight"] = drawn(90);
  EXPECT_THAT(judge(now_, before_), IsEmpty());
}

TEST_F(SinceTest, WhatIsSteppedAndDidNotMoveIsAWarningAndOfExpertsANote) {
  for (const std::string name : {"b.weight", "b.weight@exp_avg"}) {
    now_.tensors[name] = before_.tensors[name];
  }
  EXPECT_THAT(judge(now_, before_), ElementsAre("RM501 warn b.weight 1 of 3 unchanged"));

  const auto rename = [](Save& save) {
    for (const std::string end : {"", "@exp_avg"}) {
      auto node = save.tensors.extract("b.weight" + end);
      node.key() = "experts.1.weight" + end;
      save.tensors.insert(std::move(node));
    }
  };
  rename(now_);
  rename(before_);
  EXPECT_THAT(judge(now_, before_), ElementsAre("RM501 note experts.1.weight 1 of 3 unchanged"));
}

TEST_F(SinceTest, MomentsThatStayZeroAreNoOldSnapshot) {
  for (Save* const save : {&now_, &before_}) {
    for (auto& [name, values] : save->tensors) {
      if (name.ends_with("@exp_avg")) std::ranges::fill(values, 0.0F);
    }
  }
  EXPECT_THAT(judge(now_, before_), IsEmpty());
}

TEST_F(SinceTest, MomentsOfTheOldSnapshotAreAnError) {
  for (auto& [name, values] : now_.tensors) {
    if (name.ends_with("@exp_avg")) values = before_.tensors[name];
  }
  EXPECT_THAT(judge(now_, before_), ElementsAre("RM501 error a.weight@exp_avg 0 of 3 changed"));
}

TEST_F(SinceTest, WeightsWithoutStatesMayBeFrozenButNotAll) {
  for (Save* const save : {&now_, &before_}) {
    std::erase_if(save->tensors, [](const auto& one) { return one.first.ends_with("@exp_avg"); });
    save->step = 0;
    save->tensors["rotary.inv_freq"] = drawn(90);
  }
  EXPECT_THAT(judge(now_, before_), IsEmpty()) << "a buffer that nobody trains is not told of";
  now_.tensors["b.weight"] = before_.tensors["b.weight"];
  EXPECT_THAT(judge(now_, before_), ElementsAre("RM501 note b.weight 1 of 3 unchanged"));
  EXPECT_THAT(judge(before_, before_), ElementsAre("RM501 warn a.weight 0 of 3 changed"))
      << "without a step it may be the same save";
}

TEST_F(SinceTest, ALearningRateTooSmallForTheDtypeIsNoError) {
  // In what is left of the weights nothing moved; the masters did.
  for (const std::string name : {"a.weight", "b.weight", "c.weight"}) {
    now_.tensors[name + "@master"] = now_.tensors[name];
    before_.tensors[name + "@master"] = before_.tensors[name];
    now_.tensors[name] = before_.tensors[name];
  }
  EXPECT_THAT(judge(now_, before_), ElementsAre("RM501 note a.weight 0 of 3 changed"));
}

// A matrix that begins at zero grows by many powers of two, all of it alike.
TEST_F(SinceTest, GrowthFromZeroIsTraining) {
  now_.tensors["b.weight"] = drawn(91, 3e-3F);
  before_.tensors["b.weight"] = drawn(92, 1e-4F);
  EXPECT_THAT(judge(now_, before_), IsEmpty());
  std::ranges::fill(before_.tensors["b.weight"], 0.0F);
  EXPECT_THAT(judge(now_, before_), IsEmpty());
}

TEST_F(SinceTest, ScalesOfEveryPowerButTwoAndHalfAreNamed) {
  const Values values = now_.tensors["b.weight"];
  for (int k = -60; k <= 60; ++k) {
    Values& scaled = now_.tensors["b.weight"];
    for (std::size_t i = 0; i < elements; ++i) scaled[i] = std::ldexp(values[i], k);
    const auto found = judge(now_, before_);
    if (std::abs(k) < 3) continue;  // the greatest element alone may move so
    EXPECT_THAT(found, ElementsAre(fmt::format("RM512 error b.weight 2^{}", k)));
  }
}

TEST_F(SinceTest, OneElementFarBeyondAllIsNamedWithItsPlace) {
  float& element = now_.tensors["b.weight"][2 * columns + 3];
  int greatest = -100;
  for (const float value : before_.tensors["b.weight"]) {
    greatest = std::max(greatest, std::ilogb(value));
  }
  element = std::ldexp(0.99F, greatest + 4);
  EXPECT_THAT(judge(now_, before_), IsEmpty());
  element = std::ldexp(1.0F, greatest + 4);
  ASSERT_THAT(judge(now_, before_),
              ElementsAre(fmt::format("RM512 warn b.weight {:.3g}", element)));
  EXPECT_EQ(to_string(*report_.findings[0].box), "[2, 3) x [3, 4)");
  element = -std::ldexp(1.0F, greatest + 10);
  EXPECT_THAT(judge(now_, before_),
              ElementsAre(fmt::format("RM512 error b.weight {:.3g}", element)));
}

TEST_F(SinceTest, ARowOfZerosIsNamedAndZerosThatWereThereAreNot) {
  std::fill_n(now_.tensors["b.weight"].begin() + 3 * columns, columns, 0.0F);
  ASSERT_THAT(judge(now_, before_), ElementsAre("RM512 error b.weight 16 zeroed"));
  EXPECT_EQ(to_string(*report_.findings[0].box), "[3, 4) x [0, 1)");
  std::fill_n(before_.tensors["b.weight"].begin() + 3 * columns, columns, 0.0F);
  EXPECT_THAT(judge(now_, before_), IsEmpty());
}

TEST_F(SinceTest, MomentsMayJumpButNotToAnything) {
  for (float& value : now_.tensors["b.weight@exp_avg"]) value *= 1024;
  EXPECT_THAT(judge(now_, before_), IsEmpty());
  now_.tensors["b.weight@exp_avg"][5] = 1e30F;
  EXPECT_THAT(judge(now_, before_), ElementsAre("RM512 error b.weight@exp_avg 1e+30"));
}

}  // namespace
}  // namespace remesh
