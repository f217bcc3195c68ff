#include "remesh/core/checked.hpp"

#include <cstdint>
#include <limits>
#include <optional>

#include <gtest/gtest.h>

namespace remesh {
namespace {

constexpr auto most = std::numeric_limits<std::int64_t>::max();
constexpr auto least = std::numeric_limits<std::int64_t>::min();

TEST(CheckedAdd, AnswersUpToTheLimitAndNotBeyond) {
  EXPECT_EQ(checked_add(2, 3), 5);
  EXPECT_EQ(checked_add(most - 1, std::int64_t{1}), most);
  EXPECT_EQ(checked_add(most, std::int64_t{1}), std::nullopt);
  EXPECT_EQ(checked_add(least + 1, std::int64_t{-1}), least);
  EXPECT_EQ(checked_add(least, std::int64_t{-1}), std::nullopt);
  EXPECT_EQ(checked_add(std::numeric_limits<std::uint64_t>::max(), std::uint64_t{1}), std::nullopt);
}

TEST(CheckedMultiply, AnswersUpToTheLimitAndNotBeyond) {
  EXPECT_EQ(checked_multiply(6, 7), 42);
  EXPECT_EQ(checked_multiply(most, std::int64_t{1}), most);
  EXPECT_EQ(checked_multiply(most / 2, std::int64_t{2}), most - 1);
  EXPECT_EQ(checked_multiply(most / 2 + 1, std::int64_t{2}), std::nullopt);
  EXPECT_EQ(checked_multiply(least, std::int64_t{-1}), std::nullopt);
  EXPECT_EQ(checked_multiply(std::int64_t{0}, most), 0);
  EXPECT_EQ(checked_multiply(std::uint64_t{1} << 32, std::uint64_t{1} << 32), std::nullopt);
}

TEST(CheckedArithmetic, NarrowTypesHaveNarrowLimits) {
  EXPECT_EQ(checked_add(std::int8_t{100}, std::int8_t{27}), std::int8_t{127});
  EXPECT_EQ(checked_add(std::int8_t{100}, std::int8_t{28}), std::nullopt);
  EXPECT_EQ(checked_multiply(std::uint8_t{16}, std::uint8_t{16}), std::nullopt);
}

}  // namespace
}  // namespace remesh
