#include "remesh/store/staging.hpp"

#include <filesystem>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faulty_file_system.hpp"
#include "native_fixture.hpp"
#include "remesh/core/error.hpp"
#include "temporary_directory.hpp"

namespace remesh {
namespace {

using test::FaultyFileSystem;
using test::TemporaryDirectory;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StrEq;

namespace fs = std::filesystem;

class StagingTest : public ::testing::Test {
 protected:
  std::string error_of_start(const fs::path& destination, Leftovers leftovers, Errc expected) {
    try {
      Staging(files_, destination, "0123", leftovers);
      ADD_FAILURE() << "started";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), expected) << error.what();
      return error.what();
    }
    return {};
  }

  TemporaryDirectory directory_;
  FileSystem& files_ = posix_file_system();
  fs::path temporary_ = directory_ / ".ckpt.remesh-0123";
};

TEST_F(StagingTest, WritesBesideTheDestinationAndRenames) {
  Staging staging(files_, directory_ / "ckpt", "0123", Leftovers::refuse);
  EXPECT_EQ(staging.directory(), temporary_);
  test::set_content(temporary_ / "f", "x");
  EXPECT_FALSE(fs::exists(directory_ / "ckpt"));
  EXPECT_TRUE(staging.publish());
  EXPECT_EQ(test::content_of(directory_ / "ckpt/f"), "x");
  EXPECT_FALSE(fs::exists(temporary_));
}

TEST_F(StagingTest, ATrailingSlashNamesTheSameDirectory) {
  for (const char* written : {"ckpt/", "ckpt//", "ckpt/.", "x/../ckpt"}) {
    Staging staging(files_, directory_.path() / written, "0123", Leftovers::refuse);
    EXPECT_EQ(staging.directory(), temporary_) << written;
  }
}

TEST_F(StagingTest, DestroyedBeforePublishItRemovesItself) {
  { Staging staging(files_, directory_ / "ckpt", "0123", Leftovers::refuse); }
  EXPECT_TRUE(fs::is_empty(directory_.path()));
}

TEST_F(StagingTest, WhoResumesLeavesWhatHeHasWhateverEndsHim) {
  const std::string identity = "this job\n";
  for (int run = 0; run < 2; ++run) {  // where there is nothing, and where there is something
    const Staging staging(files_, directory_ / "ckpt", "0123", Leftovers::resume, identity);
    test::set_content(staging.directory() / "part", "some");
  }
  EXPECT_EQ(test::content_of(temporary_ / "part"), "some");
}

// What is there has its room already.
TEST_F(StagingTest, WhoGoesOnIsNotAskedForRoom) {
  const std::string identity = "this job\n";
  constexpr std::int64_t too_much = std::int64_t{1} << 60;
  {
    const Staging first(files_, directory_ / "ckpt", "0123", Leftovers::resume, identity);
    EXPECT_THROW(first.check_room(too_much), Error);
  }
  const Staging again(files_, directory_ / "ckpt", "0123", Leftovers::resume, identity);
  EXPECT_NO_THROW(again.check_room(too_much));
}

TEST_F(StagingTest, RefusesADestinationThatExists) {
  fs::create_directory(directory_ / "ckpt");
  fs::create_symlink("nowhere", directory_ / "link");
  EXPECT_THAT(error_of_start(directory_ / "ckpt", Leftovers::discard, Errc::exists),
              HasSubstr("destination exists"));
  error_of_start(directory_ / "link", Leftovers::discard, Errc::exists);
}

TEST_F(StagingTest, RefusesADestinationWithoutAName) {
  for (const char* written : {"/", ".", "..", "a/..", ""}) {
    error_of_start(written, Leftovers::refuse, Errc::invalid_argument);
  }
}

TEST_F(StagingTest, AMissingParentIsAFailureOfStorage) {
  error_of_start(directory_ / "none/ckpt", Leftovers::refuse, Errc::io);
}

TEST_F(StagingTest, RefusesWhatAnotherJobHoldsWhateverTheOptions) {
  Staging staging(files_, directory_ / "ckpt", "0123", Leftovers::refuse);
  for (const Leftovers leftovers : {Leftovers::refuse, Leftovers::discard, Leftovers::resume}) {
    EXPECT_THAT(error_of_start(directory_ / "ckpt", leftovers, Errc::busy),
                HasSubstr(temporary_.string()));
  }
  EXPECT_TRUE(fs::exists(temporary_));
}

TEST_F(StagingTest, NamesWhatAnEarlierJobLeftAndHowToRemoveIt) {
  fs::create_directory(temporary_);
  test::set_content(temporary_ / "old", "x");
  EXPECT_THAT(
      error_of_start(directory_ / "ckpt", Leftovers::refuse, Errc::exists),
      StrEq(fmt::format("cannot write to '{}': an earlier job that did not finish left '{}'; "
                        "`--discard` removes it and starts anew",
                        (directory_ / "ckpt").string(), temporary_.string())));
  EXPECT_TRUE(fs::exists(temporary_ / "old"));

  Staging staging(files_, directory_ / "ckpt", "0123", Leftovers::discard);
  EXPECT_TRUE(fs::is_empty(temporary_));
}

TEST_F(StagingTest, RemovesWhatOtherJobsLeftButNotWhatOneHolds) {
  for (const char* name : {".ckpt.remesh-0123", ".ckpt.remesh-4567", ".ckpt.remesh-89ab",
                           ".other.remesh-4567", "ckpt.remesh-4567"}) {
    fs::create_directory(directory_ / name);
    test::set_content(directory_ / name / "old", "x");
  }
  test::set_content(directory_ / ".ckpt.remesh-file", "x");
  const auto held = files_.try_lock(directory_ / ".ckpt.remesh-89ab");
  EXPECT_THAT(discard_left_by_other_jobs(files_, directory_ / "ckpt/", "0123"),
              ElementsAre(directory_ / ".ckpt.remesh-4567"));
  EXPECT_THAT(left_by_other_jobs(files_, directory_ / "ckpt", "0123"),
              ElementsAre(directory_ / ".ckpt.remesh-89ab"));
  for (const char* name : {".ckpt.remesh-0123", ".other.remesh-4567", "ckpt.remesh-4567"}) {
    EXPECT_TRUE(fs::exists(directory_ / name / "old")) << name;
  }
  EXPECT_TRUE(fs::exists(directory_ / ".ckpt.remesh-file"));
}

TEST_F(StagingTest, WhatItCreatedAndCannotLockItRemoves) {
  for (const bool left_over : {false, true}) {
    if (left_over) fs::create_directory(temporary_);
    FaultyFileSystem files(files_);
    files.fail_lock_at(left_over ? 1 : 0);
    EXPECT_THROW(Staging(files, directory_ / "ckpt", "0123", Leftovers::discard), Error);
    EXPECT_TRUE(fs::is_empty(directory_.path())) << left_over;
  }
}

TEST_F(StagingTest, WhatAnEarlierJobLeftAndCannotBeLockedIsKept) {
  fs::create_directory(temporary_);
  FaultyFileSystem files(files_);
  files.fail_lock_at(0);
  EXPECT_THROW(Staging(files, directory_ / "ckpt", "0123", Leftovers::discard), Error);
  EXPECT_TRUE(fs::exists(temporary_));
}

TEST_F(StagingTest, DoesNotFollowALinkInThePlaceOfItsDirectory) {
  fs::create_directory(directory_ / "elsewhere");
  test::set_content(directory_ / "elsewhere/f", "x");
  fs::create_directory_symlink("elsewhere", temporary_);
  error_of_start(directory_ / "ckpt", Leftovers::discard, Errc::io);
  EXPECT_EQ(test::content_of(directory_ / "elsewhere/f"), "x");
}

TEST_F(StagingTest, SomethingThatTookTheNameMeanwhileIsKept) {
  {
    Staging staging(files_, directory_ / "ckpt", "0123", Leftovers::refuse);
    fs::create_directory(directory_ / "ckpt");
    EXPECT_THROW(staging.publish(), Error);
  }
  EXPECT_TRUE(fs::is_empty(directory_ / "ckpt"));
  EXPECT_FALSE(fs::exists(temporary_));
}

// The calls that change something: mkdir, then in publish remove, sync, rename, sync.
TEST_F(StagingTest, AfterTheRenameAFailureToSyncSaysSo) {
  FaultyFileSystem files(files_);
  files.fail_at(4);
  Staging staging(files, directory_ / "ckpt", "0123", Leftovers::refuse);
  try {
    staging.publish();
    FAIL() << "published";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::io);
    EXPECT_THAT(error.what(), HasSubstr("visible, durability unknown"));
  }
  EXPECT_TRUE(fs::exists(directory_ / "ckpt"));
}

TEST_F(StagingTest, BeforeTheRenameAFailureToSyncPublishesNothing) {
  for (const int call : {1, 2, 3}) {
    FaultyFileSystem files(files_);
    files.fail_at(call);
    {
      Staging staging(files, directory_ / "ckpt", "0123", Leftovers::refuse);
      EXPECT_THROW(staging.publish(), Error);
    }
    EXPECT_TRUE(fs::is_empty(directory_.path())) << "call " << call;
  }
}

}  // namespace
}  // namespace remesh
