#include "exit_code.hpp"

#include <algorithm>
#include <csignal>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remesh {
namespace {

using ::testing::HasSubstr;

// The table of cli/README.md, line by line.
TEST(ExitCode, OfEachErrorIsTheDocumentedOne) {
  const std::vector<std::pair<Errc, int>> documented{
      {Errc::invalid_argument, 2}, {Errc::not_found, 4},   {Errc::corrupt, 5},
      {Errc::incomplete, 5},       {Errc::unsupported, 6}, {Errc::io, 7},
      {Errc::transport, 8},        {Errc::peer, 8},        {Errc::out_of_memory, 9},
      {Errc::exists, 10},          {Errc::busy, 10},       {Errc::unsafe, 11},
      {Errc::internal, 70},
  };
  for (const auto& [code, exit] : documented)
    EXPECT_EQ(exit_code::of(code), exit) << to_string(code);
}

// What --help lists. All codes of errors are among them, and the table is in order.
TEST(ExitCode, EachHasItsMeaning) {
  EXPECT_TRUE(std::ranges::is_sorted(exit_code::meanings, {}, &exit_code::Meaning::code));
  for (int code = 1; code <= static_cast<int>(Errc::internal); ++code) {
    if (static_cast<Errc>(code) == Errc::stopped) continue;
    const int exit = exit_code::of(static_cast<Errc>(code));
    const auto* const found =
        std::ranges::find(exit_code::meanings, exit, &exit_code::Meaning::code);
    ASSERT_NE(found, exit_code::meanings.end()) << exit;
    EXPECT_THAT(exit_code::in_short(), HasSubstr(fmt::format(" {} {},", exit, found->word)));
    EXPECT_THAT(exit_code::in_full(), HasSubstr(fmt::format(" {}  {}\n", exit, found->meaning)));
  }
}

TEST(ExitCode, OfAStopIsThatOfTheSignal) {
  EXPECT_EQ(exit_code::of(Errc::stopped, SIGINT), 130);
  EXPECT_EQ(exit_code::of(Errc::stopped, SIGTERM), 143);
  EXPECT_EQ(exit_code::of(Errc::stopped), 130) << "no signal known";
}

TEST(ExitCode, OfAnUnknownErrorIsThatOfABug) {
  EXPECT_EQ(exit_code::of(static_cast<Errc>(99)), 70);
}

}  // namespace
}  // namespace remesh
