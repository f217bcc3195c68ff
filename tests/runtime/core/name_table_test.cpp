#include "remesh/core/name_table.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include <gtest/gtest.h>

namespace remesh {
namespace {

TEST(NameTable, FindsWhatWasAdded) {
  const std::vector<std::string> names{"wq", "wk", "wv"};
  const auto name_of = [&](std::uint32_t number) { return names[number]; };
  NameTable table;
  EXPECT_EQ(table.find("wq", name_of), std::nullopt);
  for (std::uint32_t number = 0; number < 3; ++number) {
    EXPECT_EQ(table.add(names[number], number, name_of), std::nullopt);
  }
  EXPECT_EQ(table.size(), 3);
  EXPECT_EQ(table.find("wk", name_of), 1U);
  EXPECT_EQ(table.find("wo", name_of), std::nullopt);
  EXPECT_EQ(table.add("wv", 7, name_of), 2U);
  EXPECT_EQ(table.size(), 3);
  table.clear();
  EXPECT_EQ(table.find("wk", name_of), std::nullopt);
  EXPECT_EQ(table.add("wk", 1, name_of), std::nullopt);
}

// Short names of few letters: many are drawn again, and slots are fought for.
TEST(NameTable, IsAMap) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 engine(seed);
  for (int round = 0; round < 20; ++round) {
    NameTable table;
    if (round % 2 == 1) table.reserve(engine() % 5000);
    std::vector<std::string> names;
    const auto name_of = [&](std::uint32_t number) -> std::string_view { return names[number]; };
    std::unordered_map<std::string, std::uint32_t> map;
    for (int n = 0; n < 5000; ++n) {
      std::string name;
      for (auto length = engine() % 8; length > 0; --length) {
        name += static_cast<char>('a' + engine() % 4);
      }
      names.push_back(name);
      const auto number = static_cast<std::uint32_t>(names.size() - 1);
      const auto [found, is_new] = map.emplace(name, number);
      const auto before = table.add(name, number, name_of);
      ASSERT_EQ(before.has_value(), !is_new) << name;
      if (before) ASSERT_EQ(*before, found->second) << name;
    }
    ASSERT_EQ(table.size(), map.size());
    for (const auto& [name, number] : map) ASSERT_EQ(table.find(name, name_of), number) << name;
    ASSERT_EQ(table.find("e", name_of), std::nullopt);
  }
}

}  // namespace
}  // namespace remesh
