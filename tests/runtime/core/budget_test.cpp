#include "remesh/core/budget.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remesh/core/error.hpp"

namespace remesh {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::StrEq;

constexpr std::int64_t limit = MemoryBudget::least_bytes;

TEST(MemoryBudget, CountsWhatIsHeldAndTheMostThatEverWas) {
  MemoryBudget budget(limit);
  EXPECT_EQ(budget.limit_bytes(), limit);
  EXPECT_EQ(budget.used_bytes(), 0);
  {
    const auto first = budget.reserve(1000, "the first");
    EXPECT_EQ(first.bytes(), 1000);
    const auto second = budget.reserve(500, "the second");
    EXPECT_EQ(budget.used_bytes(), 1500);
  }
  EXPECT_EQ(budget.used_bytes(), 0);
  const auto third = budget.reserve(700, "the third");
  EXPECT_EQ(budget.used_bytes(), 700);
  EXPECT_EQ(budget.peak_bytes(), 1500);
}

TEST(MemoryBudget, ALimitBelowTheLeastNamesBothNumbers) {
  try {
    const MemoryBudget budget(limit - 1);
    FAIL() << "accepted a limit below the least";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::out_of_memory);
    EXPECT_THAT(error.what(), StrEq("cannot work within 67108863 bytes of memory: a job needs at "
                                    "least 67108864; say `--memory 64MiB` or more (1MiB is 2^20 "
                                    "bytes, 1MB is 10^6)"));
  }
}

TEST(MemoryBudget, MoreThanIsFreeIsRefusedWithTheNumbersAndNothingIsHeld) {
  MemoryBudget budget(limit);
  const auto held = budget.reserve(limit - 10, "most of it");
  EXPECT_EQ(budget.reserve(10, "the rest").bytes(), 10);
  try {
    const auto more = budget.reserve(11, "one panel");
    FAIL() << "reserved more than is free";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::out_of_memory);
    EXPECT_THAT(error.what(), StrEq("cannot hold one panel: it needs 11 bytes, but 10 of 67108864 "
                                    "are free; raise --memory"));
  }
  EXPECT_EQ(budget.used_bytes(), limit - 10);
  EXPECT_EQ(budget.peak_bytes(), limit);
}

TEST(MemoryBudget, HugeAndNegativeRequestsAreRefused) {
  MemoryBudget budget(limit);
  const auto held = budget.reserve(1, "something");
  EXPECT_THROW((void)budget.reserve(std::numeric_limits<std::int64_t>::max(), "all"), Error);
  try {
    (void)budget.reserve(-1, "less than nothing");
    FAIL() << "reserved a negative number of bytes";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::internal);
    EXPECT_THAT(error.what(), StrEq("cannot hold less than nothing: -1 bytes were asked for"));
  }
  EXPECT_EQ(budget.used_bytes(), 1);
}

TEST(MemoryBudget, AReservationMovesAndIsReleasedOnce) {
  MemoryBudget budget(limit);
  MemoryBudget::Reservation outer;
  EXPECT_EQ(outer.bytes(), 0);
  {
    auto inner = budget.reserve(100, "inner");
    outer = std::move(inner);
  }
  EXPECT_EQ(outer.bytes(), 100);
  EXPECT_EQ(budget.used_bytes(), 100);

  outer = budget.reserve(30, "another in its place");
  EXPECT_EQ(budget.used_bytes(), 30);

  auto& same = outer;
  outer = std::move(same);
  EXPECT_EQ(outer.bytes(), 30);
  EXPECT_EQ(budget.used_bytes(), 30);

  const MemoryBudget::Reservation last(std::move(outer));
  EXPECT_EQ(last.bytes(), 30);
  outer = {};
  EXPECT_EQ(budget.used_bytes(), 30);
}

// The address sanitizer sees it if the empty one still knows the budget.
TEST(MemoryBudget, AReservationThatWasMovedFromNeedsNoBudget) {
  MemoryBudget::Reservation empty;
  {
    MemoryBudget budget(limit);
    empty = budget.reserve(10, "something");
    const MemoryBudget::Reservation last(std::move(empty));
  }
  EXPECT_EQ(empty.bytes(), 0);  // NOLINT(bugprone-use-after-move): that is the contract
}

TEST(MemoryBudget, ManyThreadsNeverHoldMoreThanTheLimit) {
  MemoryBudget budget(limit);
  const auto hold_and_release = [&budget] {
    for (int i = 0; i < 2000; ++i) {
      try {
        const auto held = budget.reserve(limit / 3, "a third");
        std::this_thread::yield();
        EXPECT_LE(budget.used_bytes(), limit);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::out_of_memory);
      }
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) threads.emplace_back(hold_and_release);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.used_bytes(), 0);
  EXPECT_LE(budget.peak_bytes(), limit);
  EXPECT_GE(budget.peak_bytes(), limit / 3);
}

TEST(ParseBytes, ReadsANumberAndAUnit) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 25> good{{
      {"0", 0},
      {"65536", 65536},
      {"007", 7},
      {"1B", 1},
      {"2kB", 2000},
      {"2KB", 2000},
      {"3MB", 3'000'000},
      {"1.5GB", 1'500'000'000},
      {"4TB", 4'000'000'000'000},
      {"5PB", 5'000'000'000'000'000},
      {"1KiB", 1024},
      {"512MiB", std::int64_t{512} << 20},
      {"4GiB", std::int64_t{4} << 30},
      {"7TiB", std::int64_t{7} << 40},
      {"3PiB", std::int64_t{3} << 50},
      {"0.5GiB", std::int64_t{1} << 29},
      {"1.25KiB", 1280},
      {"0.1KiB", 102},
      {"0.999KiB", 1022},
      {"1.0009765625KiB", 1025},
      {"1.00097656249999999999999999999999KiB", 1024},
      {"0.3333333333333333333333333333333333333PB", 333'333'333'333'333},
      {"0.00000000000000000000000000000000009PiB", 0},
      {"9223372036854775807", std::numeric_limits<std::int64_t>::max()},
      {"8191.9999PiB", (std::int64_t{8191} << 50) + 1'125'787'316'851'939},
  }};
  for (const auto& [text, bytes] : good) EXPECT_EQ(parse_bytes(text), bytes) << text;
}

TEST(ParseBytes, AnythingElseIsRefused) {
  for (const std::string_view text :
       {"",        " ",     "GiB",   "B",     ".5GB",  "5.GB", "1.5",  "1.5B",  "-1",    "-1GiB",
        "+1GiB",   "1 GiB", " 1GiB", "1GiB ", "1GiBs", "1e9",  "0x10", "1,5GB", "1_000", "1.5.GB",
        "1.2.3GB", "inf",   "1EiB",  "1GB1",  "\t1",   "1.Gi", ".5g",  "1x"}) {
    try {
      const std::int64_t bytes = parse_bytes(text);
      ADD_FAILURE() << "read '" << text << "' as " << bytes;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument) << text;
      EXPECT_EQ(error.what(), "cannot read '" + std::string(text) +
                                  "' as a number of bytes: expected a number and a unit, such as "
                                  "4GiB, 1.5GB or 65536");
    }
  }
}

// Half of those who write "64m" mean one, half the other.
TEST(ParseBytes, AUnitThatMayMeanTwoIsRefusedWithBoth) {
  for (const std::string_view text : {"64m", "64M", "64Mi", "64mb", "64mB", "64mib", "64MIB"}) {
    try {
      const std::int64_t bytes = parse_bytes(text);
      ADD_FAILURE() << "read '" << text << "' as " << bytes;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument) << text;
      EXPECT_THAT(error.what(), HasSubstr("'" + std::string(text) + "'"));
      EXPECT_THAT(error.what(), EndsWith("; did you mean 64MiB, or 64MB, which is less?"));
    }
  }
}

TEST(ParseBytes, WhatDoesNotFitIsRefused) {
  for (const std::string_view text : {"9223372036854775808", "99999999999999999999999999",
                                      "8192PiB", "9223372036854775807kB", "9223.4PB"}) {
    try {
      const std::int64_t bytes = parse_bytes(text);
      ADD_FAILURE() << "read '" << text << "' as " << bytes;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument) << text;
      EXPECT_THAT(error.what(), StartsWith("cannot read '" + std::string(text)));
      EXPECT_THAT(error.what(), HasSubstr("it is 2^63 or more"));
    }
  }
}

TEST(FormatBytes, PicksTheUnitThatKeepsTheNumberShort) {
  constexpr std::array<std::pair<std::int64_t, std::string_view>, 14> table{{
      {0, "0 B"},
      {312, "312 B"},
      {1023, "1023 B"},
      {1024, "1.0 KiB"},
      {1536, "1.5 KiB"},
      {10 * 1024 + 51, "10.0 KiB"},
      {10 * 1024 + 52, "10.1 KiB"},
      {1023 * 1024 + 972, "1023.9 KiB"},
      {1023 * 1024 + 973, "1.0 MiB"},
      {std::int64_t{3} << 29, "1.5 GiB"},
      {std::int64_t{5} << 40, "5.0 TiB"},
      {std::numeric_limits<std::int64_t>::max(), "8.0 EiB"},
      {-312, "-312 B"},
      {-(std::int64_t{3} << 29), "-1.5 GiB"},
  }};
  for (const auto& [bytes, text] : table) EXPECT_EQ(format_bytes(bytes), text) << bytes;
  EXPECT_EQ(format_bytes(std::numeric_limits<std::int64_t>::min()), "-8.0 EiB");
}

}  // namespace
}  // namespace remesh
