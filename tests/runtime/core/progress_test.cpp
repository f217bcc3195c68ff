#include "remesh/core/progress.hpp"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remesh/core/error.hpp"

namespace remesh {
namespace {

using ::testing::StrEq;

TEST(Progress, TheBaseHearsAndSaysNothing) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Progress progress;
  progress.begin("reading", 100);
  progress.advance(60);
  progress.advance(60);
  progress.end();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(StopFlag, LetsAJobRunUntilASignalAsksItToStop) {
  StopFlag stop;
  EXPECT_EQ(stop.signal(), 0);
  EXPECT_NO_THROW(stop.check());
  stop.request(SIGTERM);
  EXPECT_EQ(stop.signal(), SIGTERM);
  try {
    stop.check();
    FAIL() << "went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::stopped);
    EXPECT_THAT(error.what(), StrEq("cannot go on: signal 15 asked to stop"));
  }
}

TEST(StopFlag, TheFirstSignalCounts) {
  StopFlag stop;
  stop.request(SIGINT);
  stop.request(SIGTERM);
  EXPECT_EQ(stop.signal(), SIGINT);
  EXPECT_THROW(stop.check(), Error);
  EXPECT_THROW(stop.check(), Error) << "a stop stays asked for";
}

StopFlag* flag_of_the_handler = nullptr;

TEST(StopFlag, IsSetByASignalHandler) {
  StopFlag stop;
  flag_of_the_handler = &stop;
  auto* const before =
      std::signal(SIGUSR1, [](int signal) { flag_of_the_handler->request(signal); });
  std::raise(SIGUSR1);
  std::signal(SIGUSR1, before);
  EXPECT_EQ(stop.signal(), SIGUSR1);
}

}  // namespace
}  // namespace remesh
