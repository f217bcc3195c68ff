#include "remesh/core/thread_pool.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <ctime>
#include <memory>
#include <mutex>
#include <numeric>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remesh/core/error.hpp"

namespace remesh {
namespace {

using ::testing::HasSubstr;
using ::testing::StrEq;
using namespace std::chrono_literals;

// Opens when `count` threads have come, or stays shut for those who waited too long.
class Meeting {
 public:
  explicit Meeting(int count) : missing_(count) {}

  /// Whether everybody came within ten seconds.
  bool wait() {
    std::unique_lock lock(mutex_);
    --missing_;
    all_here_.notify_all();
    return all_here_.wait_for(lock, 10s, [this] { return missing_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  int missing_;
};

TEST(ThreadPool, HasTheSizeAskedFor) {
  EXPECT_EQ(ThreadPool(1).size(), 1);
  EXPECT_EQ(ThreadPool(5).size(), 5);
}

// The mask belongs to the thread, so a thread of its own wears it.
TEST(ThreadPool, HasAThreadForEachProcessorThatTheProcessMayUse) {
  int all = 0;
  int one = 0;
  std::thread([&] {
    cpu_set_t mask;
    ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
    EXPECT_EQ(ThreadPool().size(), CPU_COUNT(&mask));
    all = ThreadPool(0).size();

    std::size_t first = 0;
    while (!CPU_ISSET(first, &mask)) ++first;
    CPU_ZERO(&mask);
    CPU_SET(first, &mask);
    ASSERT_EQ(sched_setaffinity(0, sizeof mask, &mask), 0);
    one = ThreadPool().size();
  }).join();
  EXPECT_GE(all, 1);
  EXPECT_EQ(one, 1);
}

TEST(ThreadPool, ANegativeSizeIsRefused) {
  try {
    const ThreadPool pool(-2);
    FAIL() << "started -2 threads";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    EXPECT_THAT(error.what(), StrEq("cannot start -2 threads: expected 1 or more, or 0 for one for "
                                    "each processor"));
  }
}

TEST(ThreadPool, EveryIndexIsGivenOutOnce) {
  for (const int size : {1, 2, 3, 8}) {
    ThreadPool pool(size);
    for (const std::size_t count : {0U, 1U, 2U, 7U, 8U, 9U, 1000U}) {
      SCOPED_TRACE(std::to_string(count) + " tasks on " + std::to_string(size) + " threads");
      std::vector<std::atomic<int>> given(count + 1);
      pool.run(count, [&](std::size_t index, int) { ++given[std::min(index, count)]; });
      for (std::size_t index = 0; index < count; ++index) EXPECT_EQ(given[index], 1) << index;
      EXPECT_EQ(given[count], 0) << "an index beyond the last";
    }
  }
}

TEST(ThreadPool, ReturnsOnlyWhenAllHaveEnded) {
  ThreadPool pool(4);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> ended = 0;
    pool.run(8, [&](std::size_t index, int) {
      std::this_thread::sleep_for(std::chrono::microseconds(100 * index));
      ++ended;
    });
    EXPECT_EQ(ended, 8);
  }
}

TEST(ThreadPool, IndicesStartInIncreasingOrder) {
  ThreadPool pool(1);
  std::vector<std::size_t> started;
  pool.run(100, [&](std::size_t index, int) { started.push_back(index); });
  std::vector<std::size_t> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(started, expected);
}

TEST(ThreadPool, AsManyTasksAsThreadsRunAtTheSameTime) {
  ThreadPool pool(4);
  Meeting meeting(4);
  std::atomic<int> met = 0;
  pool.run(4, [&](std::size_t, int) { met += meeting.wait() ? 1 : 0; });
  EXPECT_EQ(met, 4);
}

TEST(ThreadPool, AWorkerRunsOneTaskAtATimeUnderANameInRange) {
  constexpr int size = 4;
  ThreadPool pool(size);
  std::vector<std::atomic<bool>> busy(size);
  std::atomic<int> shared = 0;
  std::atomic<int> out_of_range = 0;
  pool.run(500, [&](std::size_t, int worker) {
    if (worker < 0 || worker >= size) {
      ++out_of_range;
      return;
    }
    auto& mine = busy[static_cast<std::size_t>(worker)];
    if (mine.exchange(true)) ++shared;
    std::this_thread::sleep_for(50us);
    mine = false;
  });
  EXPECT_EQ(shared, 0);
  EXPECT_EQ(out_of_range, 0);
}

// Index 5 throws first in time and index 3 afterwards: the answer must not depend on that.
TEST(ThreadPool, TheExceptionOfTheLowestIndexIsRethrown) {
  ThreadPool pool(4);
  for (int round = 0; round < 50; ++round) {
    Meeting meeting(2);
    try {
      pool.run(100, [&](std::size_t index, int) {
        if (index != 3 && index != 5) return;
        EXPECT_TRUE(meeting.wait());
        if (index == 3) std::this_thread::sleep_for(500us);
        throw std::runtime_error("index " + std::to_string(index));
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      ASSERT_THAT(error.what(), StrEq("index 3"));
    }
  }
}

TEST(ThreadPool, AHigherIndexThatThrowsLaterDoesNotReplaceALowerOne) {
  ThreadPool pool(2);
  Meeting meeting(2);
  try {
    pool.run(2, [&](std::size_t index, int) {
      EXPECT_TRUE(meeting.wait());
      if (index == 1) std::this_thread::sleep_for(20ms);
      throw std::runtime_error("index " + std::to_string(index));
    });
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), StrEq("index 0"));
  }
}

TEST(ThreadPool, NoIndexStartsAfterATaskThrew) {
  ThreadPool one(1);
  std::vector<std::size_t> started;
  EXPECT_THROW(one.run(10,
                       [&](std::size_t index, int) {
                         started.push_back(index);
                         if (index == 2) throw std::runtime_error("stop");
                       }),
               std::runtime_error);
  EXPECT_EQ(started, (std::vector<std::size_t>{0, 1, 2}));

  ThreadPool four(4);
  std::atomic<int> count = 0;
  EXPECT_THROW(four.run(1000,
                        [&](std::size_t index, int) {
                          ++count;
                          if (index == 0) throw std::runtime_error("stop");
                          std::this_thread::sleep_for(1ms);
                        }),
               std::runtime_error);
  EXPECT_LT(count, 500);
}

TEST(ThreadPool, RunsAgainAfterAThrow) {
  ThreadPool pool(3);
  for (int round = 0; round < 100; ++round) {
    EXPECT_THROW(pool.run(10, [](std::size_t, int) { throw std::runtime_error("no"); }),
                 std::runtime_error);
    std::atomic<int> count = 0;
    pool.run(10, [&](std::size_t, int) { ++count; });
    EXPECT_EQ(count, 10);
  }
}

TEST(ThreadPool, ManySmallRunsLoseNothing) {
  ThreadPool pool(4);
  std::atomic<std::size_t> count = 0;
  std::size_t expected = 0;
  for (std::size_t round = 0; round < 5000; ++round) {
    pool.run(round % 6, [&](std::size_t, int) { ++count; });
    expected += round % 6;
    ASSERT_EQ(count, expected) << "round " << round;
  }
}

TEST(ThreadPool, MayBeDestroyedAtAnyTimeBetweenRuns) {
  for (int round = 0; round < 100; ++round) {
    ThreadPool pool(3);
    if (round % 2 == 0) pool.run(2, [](std::size_t, int) {});
  }
}

TEST(ThreadPool, ARunWithinARunIsRefusedAndDoesNotHang) {
  ThreadPool pool(2);
  try {
    pool.run(1, [&](std::size_t, int) { pool.run(1, [](std::size_t, int) {}); });
    FAIL() << "ran within a run";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::internal);
    EXPECT_THAT(error.what(), HasSubstr("cannot run tasks on a pool that is running some"));
  }
}

std::chrono::nanoseconds processor_time() {
  std::timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

TEST(ThreadPool, WhoeverWaitsUsesNoProcessor) {
  ThreadPool pool(4);
  auto before = processor_time();
  std::this_thread::sleep_for(200ms);
  EXPECT_LT(processor_time() - before, 10ms) << "all four threads idle";

  before = processor_time();
  pool.run(1, [](std::size_t, int) { std::this_thread::sleep_for(200ms); });
  EXPECT_LT(processor_time() - before, 10ms) << "three idle, and the caller of run()";
}

}  // namespace
}  // namespace remesh
