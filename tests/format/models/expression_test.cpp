#include "expression.hpp"

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remesh/core/error.hpp"

namespace remesh::detail {
namespace {

Index value_of(const char* text) {
  const std::map<std::string, Index> sizes{
      {"two", 2}, {"three", 3}, {"big", Index{1} << 62}, {"h_1", 10}};
  return Expression::parse(text).evaluate([&](const std::string& name) { return sizes.at(name); });
}

TEST(Expression, HasTheUsualPrecedence) {
  // clang-format off
  const std::vector<std::pair<const char*, Index>> table{
      {"7", 7}, {" two ", 2}, {"h_1", 10}, {"two*three", 6}, {"two + three * 4", 14}, {"2 * 3 + 4", 10},
      {"10 - 2 - 3", 5}, {"10 - 2 * 3", 4}, {"24 / 4 / 3", 2}, {"24 / 4 * 3", 18}, {"2 * 24 / 3", 16},
      {"two - three", -1}, {"1 + 6 / 3 - 2", 1}, {"h_1 / 2 + h_1", 15},
  };
  // clang-format on
  for (const auto& [text, value] : table) EXPECT_EQ(value_of(text), value) << text;
}

TEST(Expression, ListsItsNames) {
  EXPECT_THAT(Expression::parse("two * 3 + h_1 - two").names(),
              testing::ElementsAre("two", "h_1", "two"));
}

TEST(Expression, RefusesOtherTexts) {
  for (const char* text : {"", " ", "+", "2 +", "* 2", "2 3", "two three", "(2)", "2x", "2 ** 3",
                           "-2", "2 % 3", "1.5", "99999999999999999999", "a-", "a\tb"}) {
    try {
      Expression::parse(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(),
                "'" + std::string(text) +
                    "' is no size: it must be numbers and names joined by + - * / //");
    }
  }
}

std::string evaluation_error(const char* text) {
  try {
    value_of(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(Expression, NeverRoundsNorWraps) {
  EXPECT_EQ(evaluation_error("10 / three"), "'10 / three' is no whole number: 10 / 3");
  EXPECT_EQ(evaluation_error("two / 0"), "'two / 0' is no whole number: 2 / 0");
  EXPECT_EQ(evaluation_error("big * 2"), "'big * 2' is too large");
  EXPECT_EQ(evaluation_error("big + big"), "'big + big' is too large");
  EXPECT_EQ(evaluation_error("0 - big - big - 1"), "'0 - big - big - 1' is too large");
}

}  // namespace
}  // namespace remesh::detail
