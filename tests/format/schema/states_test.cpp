#include "remesh/schema/states.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remesh {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string split_name(std::string_view name) {
  const auto parts = parse_state_name(name);
  return parts ? std::string(parts->parameter) + " | " + std::string(parts->state) : "-";
}

TEST(StateName, IsSplitAtItsLastAt) {
  EXPECT_EQ(split_name("norm.weight@exp_avg"), "norm.weight | exp_avg");
  EXPECT_EQ(split_name("a@b@c"), "a@b | c");
  for (const char* plain : {"norm.weight", "", "@", "@exp_avg", "norm@"}) {
    EXPECT_EQ(split_name(plain), "-") << plain;
  }
}

TEST(ParametersOf, AStateNeedsItsParameter) {
  const std::vector<TensorDesc> tensors{{"b@exp_avg", DType::f32, Box{{0, 2}}},
                                        {"a", DType::bf16, Box{{0, 2}}},
                                        {"a@master", DType::f32, Box{{0, 2}}},
                                        {"c@d", DType::f32, Box{{0, 2}}},
                                        {"c@d@exp_avg", DType::f32, Box{{0, 2}}}};
  EXPECT_THAT(parameters_of(tensors), ElementsAre(-1, -1, 1, -1, 3));
}

// "id severity: message" of each finding.
std::vector<std::string> findings_of(const std::vector<TensorDesc>& tensors) {
  CollectedFindings findings;
  check_states(tensors, findings);
  std::vector<std::string> texts;
  for (const Finding& finding : findings.all) {
    texts.push_back(finding.id + " " + std::string(to_string(finding.severity)) + " " +
                    finding.tensor + ": " + finding.message);
  }
  return texts;
}

class CheckStates : public ::testing::Test {
 protected:
  void add(const std::string& name, DType dtype, std::vector<std::string> states) {
    tensors_.push_back({name, dtype, Box{{0, 4}, {0, 2}}});
    for (const std::string& state : states) {
      tensors_.push_back({name + "@" + state, DType::f32, Box{{0, 4}, {0, 2}}});
    }
  }

  std::vector<TensorDesc> tensors_;
};

TEST_F(CheckStates, NothingIsWrongWithoutStatesOrWithAllOfThem) {
  add("a", DType::bf16, {});
  EXPECT_THAT(findings_of(tensors_), IsEmpty());
  tensors_.clear();
  add("a", DType::bf16, {"master", "exp_avg", "exp_avg_sq"});
  add("b", DType::bf16, {"master", "exp_avg", "exp_avg_sq"});
  add("norm", DType::f32, {"exp_avg", "exp_avg_sq"});
  EXPECT_THAT(findings_of(tensors_), IsEmpty()) << "what is in f32 needs no master";
}

TEST_F(CheckStates, ParametersMayHaveDifferentOptimizers) {
  add("matrix", DType::bf16, {"master", "momentum_buffer"});
  add("vector", DType::bf16, {"master", "exp_avg", "exp_avg_sq"});
  EXPECT_THAT(findings_of(tensors_), IsEmpty());
}

TEST_F(CheckStates, MissingStatesAreListed) {
  for (const char* name : {"a", "b", "c", "d"}) add(name, DType::bf16, {"master", "exp_avg"});
  add("e", DType::bf16, {"master", "exp_avg", "exp_avg_sq"});
  EXPECT_THAT(findings_of(tensors_),
              ElementsAre("RM309 error a: cannot use the optimizer: 4 of 5 parameters lack states "
                          "that others have: 'a' lacks exp_avg_sq, 'b' lacks exp_avg_sq, 'c' lacks "
                          "exp_avg_sq and 1 more"));
}

TEST_F(CheckStates, ParametersWithoutAnyAreAWarning) {
  add("frozen", DType::bf16, {});
  add("a", DType::bf16, {"exp_avg"});
  EXPECT_THAT(findings_of(tensors_),
              ElementsAre("RM309 warn frozen: 1 of 2 parameters have no optimizer state: 'frozen'; "
                          "were they frozen?"));
}

TEST_F(CheckStates, AStateOfAnotherShapeIsAnErrorIfItIsElementwise) {
  add("a", DType::bf16, {"exp_avg", "exp_avg_sq_row"});
  tensors_[1].extent = Box{{0, 2}, {0, 4}};
  tensors_[2].extent = Box{{0, 4}};
  EXPECT_THAT(
      findings_of(tensors_),
      ElementsAre("RM303 error a@exp_avg: cannot use the optimizer: 1 of its tensors have another "
                  "shape than their parameter: 'a@exp_avg' (f32, [0, 2) x [0, 4)) of a parameter "
                  "[0, 4) x [0, 2); it is that of another model"));
}

}  // namespace
}  // namespace remesh
