#include "sliding_window.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "remesh/core/thread_pool.hpp"

namespace remesh::detail {
namespace {

TEST(SlidingWindow, NoTaskBeginsBeforeAllThatAreAWidthInFrontHaveEnded) {
  constexpr unsigned seed = 20261130;
  SCOPED_TRACE("seed " + std::to_string(seed));
  constexpr std::size_t count = 400;
  for (const std::size_t width : {1U, 2U, 3U, 7U, 500U}) {
    SCOPED_TRACE("width " + std::to_string(width));
    std::mt19937 engine(seed);
    std::vector<int> naps(count);
    for (int& nap : naps) nap = engine() % 10 == 0 ? 300 : 0;
    std::vector<std::atomic<bool>> ended(count);
    std::atomic<int> too_early = 0;
    std::atomic<std::size_t> done = 0;
    SlidingWindow window(width);
    ThreadPool pool(4);
    pool.run(count, [&](std::size_t index, int) {
      const auto stay = window.enter(index);
      for (std::size_t before = 0; before + width <= index; ++before) {
        if (!ended[before]) ++too_early;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(naps[index]));
      ended[index] = true;
      ++done;
    });
    EXPECT_EQ(too_early, 0);
    EXPECT_EQ(done, count);
  }
}

TEST(SlidingWindow, OnlyTheFirstUnderWayHoldsOthersUp) {
  SlidingWindow window(3);
  std::atomic<bool> entered = false;
  std::thread fourth;
  {
    const auto first = window.enter(0);
    { const auto second = window.enter(1); }
    { const auto third = window.enter(2); }
    fourth = std::thread([&] {
      const auto stay = window.enter(3);
      entered = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(entered);
  }
  fourth.join();
  EXPECT_TRUE(entered);
}

TEST(SlidingWindow, ATaskThatThrowsHoldsNobodyUp) {
  SlidingWindow window(1);
  ThreadPool pool(2);
  const auto fail_at_five = [&](std::size_t index, int) {
    const auto stay = window.enter(index);
    if (index != 5) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the next one is waiting by then
    throw std::runtime_error("as wanted");
  };
  EXPECT_THROW(pool.run(100, fail_at_five), std::runtime_error);
}

}  // namespace
}  // namespace remesh::detail
