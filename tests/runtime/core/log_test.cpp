#include "remesh/core/log.hpp"

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace remesh {
namespace {

std::string said_on_stderr(const std::function<void()>& action) {
  testing::internal::CaptureStderr();
  action();
  return testing::internal::GetCapturedStderr();
}

void say_everything(const Log& log) {
  log.error("one");
  log.warn("two");
  log.info("three");
  log.debug("four");
}

TEST(Log, SaysWhatIsAtLeastAsGraveAsItsLevel) {
  const std::string one = "remesh: error: one\n";
  const std::string two = one + "remesh: warn: two\n";
  const std::string three = two + "remesh: info: three\n";
  const std::string four = three + "remesh: debug: four\n";
  EXPECT_EQ(said_on_stderr([] { say_everything(Log(LogLevel::error)); }), one);
  EXPECT_EQ(said_on_stderr([] { say_everything(Log(LogLevel::warn)); }), two);
  EXPECT_EQ(said_on_stderr([] { say_everything(Log(LogLevel::info)); }), three);
  EXPECT_EQ(said_on_stderr([] { say_everything(Log(LogLevel::debug)); }), four);
  EXPECT_EQ(said_on_stderr([] { say_everything(Log()); }), two);
}

TEST(Log, TakesTextAsItIs) {
  EXPECT_EQ(said_on_stderr([] { Log().warn("100% of {} and {0:x} and %v"); }),
            "remesh: warn: 100% of {} and {0:x} and %v\n");
}

TEST(Log, TwoOfThemKeepTheirOwnLevels) {
  EXPECT_EQ(said_on_stderr([] {
              const Log quiet(LogLevel::error);
              const Log chatty(LogLevel::info);
              quiet.info("not said");
              chatty.info("said");
            }),
            "remesh: info: said\n");
}

TEST(Log, LinesOfManyThreadsAreNotMixed) {
  const std::string text(200, 'x');
  const std::string line = "remesh: warn: " + text + "\n";
  const std::string said = said_on_stderr([&text] {
    const Log log;
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 50; ++k) log.warn(text);
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  ASSERT_EQ(said.size(), 200 * line.size());
  for (std::size_t at = 0; at < said.size(); at += line.size()) {
    ASSERT_EQ(said.substr(at, line.size()), line);
  }
}

}  // namespace
}  // namespace remesh
