#include "child_process.hpp"

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remesh/core/error.hpp"

namespace remesh {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

const TextSink nowhere = [](std::string_view) {};

std::string output_of(const std::string& script, std::chrono::milliseconds deadline = 20s) {
  std::string output;
  const StopFlag stop;
  run_child({"/bin/sh", "-c", script}, deadline, stop,
            [&output](std::string_view text) { output += text; });
  return output;
}

// What it threw; a code that run_child never gives where it did not.
Error error_of(const std::string& script, const TextSink& sink = nowhere,
               std::chrono::milliseconds deadline = 20s) {
  try {
    const StopFlag stop;
    run_child({"/bin/sh", "-c", script}, deadline, stop, sink);
  } catch (const Error& error) {
    return error;
  }
  return {Errc::internal, "nothing was thrown"};
}

// Whether a process whose id a script printed has ended.
bool gone(const std::string& pid) { return ::kill(std::stoi(pid), 0) != 0; }

TEST(RunChild, GivesWhatIsPrinted) {
  EXPECT_EQ(output_of("printf one; printf two"), "onetwo");
  EXPECT_EQ(output_of("head -c 3000000 /dev/zero").size(), 3000000U);
}

TEST(RunChild, HasNoInputNoOtherFileAndNoPlugins) {
  ::setenv("HDF5_PLUGIN_PATH", "/somewhere", 1);
  ::setenv("HDF5_DRIVER", "family", 1);
  EXPECT_EQ(output_of("cat; echo $HDF5_PLUGIN_PATH$HDF5_DRIVER$HDF5_PLUGIN_PRELOAD"), "::\n");
  ::unsetenv("HDF5_PLUGIN_PATH");
  ::unsetenv("HDF5_DRIVER");
  // ls itself has its directory open.
  EXPECT_EQ(output_of("ls /proc/self/fd | wc -l"), "4\n");
}

TEST(RunChild, ACrashIsAnAnswer) {
  const Error error = error_of("kill -SEGV $$");
  EXPECT_EQ(error.code(), Errc::corrupt);
  EXPECT_EQ(error.id(), "RM211");
  EXPECT_THAT(error.what(), HasSubstr("died of signal 11 (Segmentation fault)"));
}

TEST(RunChild, AnExitCodeIsAnAnswer) {
  EXPECT_THAT(error_of("exit 7").what(), HasSubstr("ended with 7"));
}

TEST(RunChild, WhoHangsIsEnded) {
  std::string pid;
  const auto keep = [&pid](std::string_view text) { pid += text; };
  const auto begin = std::chrono::steady_clock::now();
  for (const char* hanging : {"echo $$; exec sleep 100", "echo $$; exec >&-; exec sleep 100",
                              "echo $$; trap '' TERM INT; while :; do :; done"}) {
    pid.clear();
    const Error error = error_of(hanging, keep, 300ms);
    EXPECT_EQ(error.id(), "RM211") << hanging;
    EXPECT_THAT(error.what(), HasSubstr("did not end in time")) << hanging;
    EXPECT_TRUE(gone(pid)) << hanging;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
}

TEST(RunChild, WhoTalksWithoutEndIsEndedWhenTheListenerHasEnough) {
  std::int64_t heard = 0;
  const Error error = error_of("yes", [&heard](std::string_view text) {
    heard += std::ssize(text);
    if (heard > 1000000) throw Error(Errc::corrupt, "enough");
  });
  EXPECT_STREQ(error.what(), "enough");
}

TEST(RunChild, AStopEndsIt) {
  StopFlag stop;
  std::string pid;
  std::thread asking([&stop] {
    std::this_thread::sleep_for(200ms);
    stop.request(SIGTERM);
  });
  const auto begin = std::chrono::steady_clock::now();
  try {
    run_child({"/bin/sh", "-c", "echo $$; exec sleep 100"}, 100s, stop,
              [&pid](std::string_view text) { pid += text; });
    ADD_FAILURE() << "it was not stopped";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::stopped);
  }
  asking.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
  EXPECT_TRUE(gone(pid));
}

TEST(RunChild, WhatCannotBeStartedIsTheSystemsRefusal) {
  const StopFlag stop;
  try {
    run_child({"/no/such/program"}, 1s, stop, nowhere);
    ADD_FAILURE() << "it was started";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::io);
  }
}

}  // namespace
}  // namespace remesh
