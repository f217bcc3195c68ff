// A disk that fails: whatever call it is, no checkpoint is visible that is not whole.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faulty_file_system.hpp"
#include "native_fixture.hpp"
#include "remesh/core/error.hpp"
#include "shard_format.hpp"
#include "temporary_directory.hpp"

namespace remesh {
namespace {

using test::FaultyFileSystem;
using test::TemporaryDirectory;
using test::write_checkpoint;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

std::int64_t calls_of_a_whole_job() {
  TemporaryDirectory directory;
  FaultyFileSystem files(posix_file_system());
  write_checkpoint(directory / "ckpt", test::tiny_catalog(), {.job_id = "test"}, files);
  return files.calls();
}

// The last call syncs the parent, after the rename: then the checkpoint is there, and whole.
TEST(NativeStoreFaults, AFailureOfAnyCallLeavesNothingVisible) {
  const std::int64_t calls = calls_of_a_whole_job();
  ASSERT_GT(calls, 20);
  for (std::int64_t call = 0; call < calls; ++call) {
    TemporaryDirectory directory;
    FaultyFileSystem files(posix_file_system());
    files.fail_at(call);
    try {
      write_checkpoint(directory / "ckpt", test::tiny_catalog(), {.job_id = "test"}, files);
      ADD_FAILURE() << "call " << call << " failed unnoticed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::io) << "call " << call << ": " << error.what();
    }
    if (call + 1 < calls) {
      EXPECT_TRUE(fs::is_empty(directory.path())) << "call " << call;
    } else {
      EXPECT_EQ(test::what_differs(*test::open_strict(directory / "ckpt")), "");
    }
  }
}

// Nothing works any more, clearing up neither: the next job finds what was left, and names it.
TEST(NativeStoreFaults, AMachineThatStopsLeavesWhatTheNextJobCanDiscard) {
  const std::int64_t calls = calls_of_a_whole_job();
  for (std::int64_t call = 1; call + 1 < calls; ++call) {
    TemporaryDirectory directory;
    FaultyFileSystem files(posix_file_system());
    files.stop_at(call);
    EXPECT_THROW(
        write_checkpoint(directory / "ckpt", test::tiny_catalog(), {.job_id = "test"}, files),
        Error);
    EXPECT_FALSE(fs::exists(directory / "ckpt")) << "call " << call;
    try {
      write_checkpoint(directory / "ckpt", test::tiny_catalog());
      ADD_FAILURE() << "took what was left";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::exists);
      EXPECT_THAT(error.what(), HasSubstr("--discard"));
    }
    write_checkpoint(directory / "ckpt", test::tiny_catalog(),
                     {.job_id = "test", .leftovers = Leftovers::discard});
    EXPECT_EQ(test::what_differs(*test::open_strict(directory / "ckpt")), "");
  }
}

// A header says "sealed" of what lies behind it; after a power cut that must be true.
TEST(NativeStoreFaults, AShardCallsItselfSealedOnlyWhenItsPayloadIsOnTheMedium) {
  TemporaryDirectory directory;
  FaultyFileSystem files(posix_file_system());
  write_checkpoint(directory / "ckpt", test::tiny_catalog(), {.job_id = "test"}, files);
  std::map<fs::path, std::vector<std::int64_t>> offsets;
  for (const auto& [path, offset] : files.events()) {
    if (path.extension() == ".h5") offsets[path].push_back(offset);
  }
  ASSERT_EQ(offsets.size(), 3U);
  for (const auto& [path, of_file] : offsets) {
    SCOPED_TRACE(path);
    // From behind: a sync, the header, the index, and before them the sync of the payload.
    ASSERT_GE(of_file.size(), 5U);
    const auto end = of_file.rbegin();
    EXPECT_EQ(end[0], -1);
    EXPECT_EQ(end[1], 0);
    EXPECT_GE(end[2], native::header_bytes);
    EXPECT_EQ(end[3], -1);
  }
}

TEST(NativeStoreFaults, TwoJobsDoNotShareADirectory) {
  TemporaryDirectory directory;
  const auto first = test::start(directory / "ckpt", test::tiny_catalog());
  for (const Leftovers leftovers : {Leftovers::refuse, Leftovers::discard}) {
    try {
      test::start(directory / "ckpt", test::tiny_catalog(),
                  {.job_id = "test", .leftovers = leftovers});
      FAIL() << "two jobs write one directory";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::busy);
      EXPECT_EQ(error.id(), "RM701");
    }
  }
  test::write_all(*first);
  test::seal(*first);
  first->publish();
  EXPECT_EQ(test::what_differs(*test::open_strict(directory / "ckpt")), "");
}

}  // namespace
}  // namespace remesh
