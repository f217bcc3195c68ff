#include "name_table.hpp"

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace remesh::detail {
namespace {

NameTable table_of(std::initializer_list<std::string_view> patterns) {
  NameTable table;
  std::uint32_t rule = 0;
  for (const std::string_view pattern : patterns) {
    EXPECT_EQ(table.add(NamePattern::parse(pattern), rule++), std::nullopt) << pattern;
  }
  return table;
}

// "rule:layer", or "-".
std::string found(const NameTable& table, std::string_view name) {
  const auto claim = table.find(name);
  return claim ? std::to_string(claim->rule) + ":" + std::to_string(claim->layer) : "-";
}

TEST(NameTable, FindsTheRuleAndTheLayer) {
  const NameTable table = table_of({"h.{layer}.w", "h.{layer}.w2", "h.{layer}.w3", "norm", "fc1.w",
                                    "fc2.w", "{layer}", "a{layer}b", "h#.x"});
  EXPECT_EQ(found(table, "h.0.w"), "0:0");
  EXPECT_EQ(found(table, "h.12.w"), "0:12");
  EXPECT_EQ(found(table, "h.7.w2"), "1:7");
  EXPECT_EQ(found(table, "h.7.w3"), "2:7");
  EXPECT_EQ(found(table, "norm"), "3:-1");
  EXPECT_EQ(found(table, "fc1.w"), "4:-1");
  EXPECT_EQ(found(table, "fc2.w"), "5:-1");
  EXPECT_EQ(found(table, "2147483647"), "6:2147483647");
  EXPECT_EQ(found(table, "a5b"), "7:5");
  EXPECT_EQ(found(table, "h#.x"), "8:-1");
}

TEST(NameTable, FindsNoOtherName) {
  const NameTable table = table_of({"h.{layer}.w", "h.{layer}.w2", "norm", "fc1.w"});
  for (const char* name :
       {"",       "h.w",     "h..w",    "h.x.w",      "h.-1.w",         "h.1.W",
        "h.1.w4", "h.1.w22", "h.01.w",  "h.00.w",     "h.2147483648.w", "h.99999999999999999999.w",
        "h.#.w",  "norm1",   "norm ",   "fc3.w",      "fc01.w",         "fc11.w",
        "xh.1.w", "h.1.w.b", "h.1.1.w", "h.{layer}.w"}) {
    EXPECT_EQ(found(table, name), "-") << name;
  }
}

TEST(NameTable, RefusesPatternsThatClaimTheSameName) {
  NameTable table;
  EXPECT_EQ(table.add(NamePattern::parse("h.{layer}.w1"), 5), std::nullopt);
  EXPECT_EQ(table.add(NamePattern::parse("h.3.w1"), 6), 5U);
  EXPECT_EQ(table.add(NamePattern::parse("h.1.w{layer}"), 7), 5U);
  EXPECT_EQ(table.add(NamePattern::parse("h.{layer}.w2"), 8), std::nullopt);
  EXPECT_EQ(table.add(NamePattern::parse("h.{layer}.w1.x"), 9), std::nullopt);
}

TEST(NamePattern, GivesTheNameOfALayer) {
  EXPECT_EQ(NamePattern::parse("h.{layer}.w").name(12), "h.12.w");
  EXPECT_EQ(NamePattern::parse("{layer}").name(0), "0");
  EXPECT_EQ(NamePattern::parse("norm").name(-1), "norm");
}

}  // namespace
}  // namespace remesh::detail
