#include "remesh/store/file_system.hpp"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "native_fixture.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/fail_to_write.hpp"
#include "temporary_directory.hpp"

namespace remesh {
namespace {

using test::bytes_of;
using test::content_of;
using test::set_content;
using test::TemporaryDirectory;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StrEq;

namespace fs = std::filesystem;

// What `action` threw; fails the test if it threw nothing.
template <typename Action>
Error error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(Errc::internal, "nothing");
}

class FileSystemTest : public ::testing::Test {
 protected:
  TemporaryDirectory directory_;
  FileSystem& files_ = posix_file_system();
};

TEST_F(FileSystemTest, ReadsAndWritesAtOffsetsAndGrows) {
  const auto file = files_.create(directory_ / "f");
  file->write_at(3, bytes_of("def"));
  file->write_at(0, bytes_of("abc"));
  EXPECT_EQ(file->size_bytes(), 6);
  std::vector<std::byte> into(4);
  file->read_at(1, into);
  EXPECT_EQ(into, bytes_of("bcde"));
  file->sync();
  file->forget_cache();
  EXPECT_EQ(content_of(directory_ / "f"), "abcdef");
}

TEST_F(FileSystemTest, ReadingPastTheEndNamesTheFileAndBothNumbers) {
  set_content(directory_ / "f", "abc");
  const auto file = files_.open(directory_ / "f");
  std::vector<std::byte> into(4);
  const Error error = error_of([&] { file->read_at(1, into); });
  EXPECT_EQ(error.code(), Errc::corrupt);
  EXPECT_EQ(error.id(), "RM202");
  EXPECT_THAT(
      error.what(),
      StrEq(fmt::format("cannot read '{}': it ends at byte 3, but bytes up to 5 are needed; "
                        "the file is cut short",
                        (directory_ / "f").string())));
}

TEST_F(FileSystemTest, AWriteThatTheSystemRefusesSaysHowMuchItWas) {
  const auto file = files_.create(directory_ / "f");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 4;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Error error = error_of([&] { file->write_at(2, bytes_of("abc")); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(error.code(), Errc::io);
  EXPECT_EQ(error.id(), "RM703");
  EXPECT_THAT(error.what(), StrEq(fmt::format("cannot write 3 bytes at 2 of '{}': File too large",
                                              (directory_ / "f").string())));
}

TEST_F(FileSystemTest, WhyTheSystemRefusesToWriteHasAnId) {
  const std::vector<std::pair<int, const char*>> ids{
      {ENOSPC, "RM702"}, {EDQUOT, "RM702"}, {EACCES, "RM706"}, {EPERM, "RM706"}, {EROFS, "RM706"},
      {EIO, "RM703"},    {EFBIG, "RM703"},  {ENOENT, "RM703"}, {ELOOP, "RM703"}, {EEXIST, "RM703"}};
  for (const auto& [number, id] : ids) {
    const std::string reason = std::generic_category().message(number);
    const Error error = error_of([number = number] { fail_to_write("write 'f'", number); });
    EXPECT_EQ(error.code(), Errc::io) << reason;
    EXPECT_EQ(error.id(), id) << reason;
    EXPECT_THAT(error.what(), StrEq("cannot write 'f': " + reason));
  }
}

TEST_F(FileSystemTest, OpensRegularFilesAlone) {
  fs::create_directory(directory_ / "directory");
  fs::create_symlink("target", directory_ / "link");
  set_content(directory_ / "target", "x");
  ASSERT_EQ(::mkfifo((directory_ / "fifo").c_str(), 0600), 0);
  for (const char* name : {"directory", "link", "fifo"}) {
    const Error error = error_of([&] { files_.open(directory_ / name); });
    EXPECT_EQ(error.code(), Errc::unsafe) << name;
    EXPECT_EQ(error.id(), "RM604") << name;
  }
  const Error error = error_of([&] { files_.open_for_writing(directory_ / "link"); });
  EXPECT_EQ(error.id(), "RM604");
}

TEST_F(FileSystemTest, AMissingFileIsNotFound) {
  EXPECT_EQ(error_of([&] { files_.open(directory_ / "none"); }).code(), Errc::not_found);
  EXPECT_EQ(error_of([&] { files_.open_for_writing(directory_ / "none"); }).code(),
            Errc::not_found);
  EXPECT_FALSE(fs::exists(directory_ / "none"));
}

TEST_F(FileSystemTest, CreatesNothingWhereSomethingIs) {
  set_content(directory_ / "f", "old");
  fs::create_symlink("elsewhere", directory_ / "dangling");
  for (const char* name : {"f", "dangling"}) {
    EXPECT_EQ(error_of([&] { files_.create(directory_ / name); }).code(), Errc::exists) << name;
    EXPECT_EQ(error_of([&] { files_.create_directory(directory_ / name); }).code(), Errc::exists);
  }
  EXPECT_EQ(content_of(directory_ / "f"), "old");
  EXPECT_FALSE(fs::exists(directory_ / "elsewhere"));
}

TEST_F(FileSystemTest, ListsEntriesByNameWithTheirKinds) {
  set_content(directory_ / "b", "12345");
  fs::create_directory(directory_ / "a");
  fs::create_symlink("b", directory_ / "c");
  ASSERT_EQ(::mkfifo((directory_ / "d").c_str(), 0600), 0);
  const auto entries = files_.list(directory_.path());
  ASSERT_EQ(entries.size(), 4U);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_EQ(entries[0].kind, EntryKind::directory);
  EXPECT_EQ(entries[1].name, "b");
  EXPECT_EQ(entries[1].kind, EntryKind::regular);
  EXPECT_EQ(entries[1].size_bytes, 5);
  EXPECT_EQ(entries[2].kind, EntryKind::link);
  EXPECT_EQ(entries[3].kind, EntryKind::other);
  EXPECT_EQ(error_of([&] { files_.list(directory_ / "none"); }).code(), Errc::not_found);
}

TEST_F(FileSystemTest, LooksWithoutFollowingLinks) {
  fs::create_symlink("none", directory_ / "link");
  EXPECT_EQ(files_.look(directory_ / "link")->kind, EntryKind::link);
  EXPECT_FALSE(files_.look(directory_ / "none"));
  EXPECT_FALSE(files_.look(directory_ / "link" / "below"));
}

TEST_F(FileSystemTest, RenamesButNeverReplaces) {
  fs::create_directory(directory_ / "a");
  fs::create_directory(directory_ / "empty");
  set_content(directory_ / "file", "x");
  for (const char* taken : {"empty", "file"}) {
    EXPECT_EQ(
        error_of([&] { files_.rename_no_replace(directory_ / "a", directory_ / taken); }).code(),
        Errc::exists)
        << taken;
  }
  files_.rename_no_replace(directory_ / "a", directory_ / "b");
  EXPECT_TRUE(fs::is_directory(directory_ / "b"));
  EXPECT_FALSE(fs::exists(directory_ / "a"));
}

TEST_F(FileSystemTest, ALockHasOneHolder) {
  auto held = files_.try_lock(directory_.path());
  EXPECT_NE(held, nullptr);
  EXPECT_EQ(files_.try_lock(directory_.path()), nullptr);
  held.reset();
  EXPECT_NE(files_.try_lock(directory_.path()), nullptr);
}

TEST_F(FileSystemTest, RemovesADirectoryWithAllInItButNotWhatLinksPointTo) {
  fs::create_directories(directory_ / "a/b");
  set_content(directory_ / "outside", "x");
  fs::create_symlink("../outside", directory_ / "a/link");
  files_.remove_all(directory_ / "a");
  files_.remove_all(directory_ / "a");
  EXPECT_FALSE(fs::exists(directory_ / "a"));
  EXPECT_EQ(content_of(directory_ / "outside"), "x");
}

TEST_F(FileSystemTest, SyncsDirectoriesAndCountsFreeBytes) {
  EXPECT_TRUE(files_.sync_directory(directory_.path()));
  EXPECT_GT(files_.free_bytes(directory_.path()), 0);
  EXPECT_EQ(error_of([&] { files_.sync_directory(directory_ / "none"); }).code(), Errc::not_found);
}

TEST_F(FileSystemTest, ReadsSmallFilesWholeAndLargeOnesNot) {
  set_content(directory_ / "f", std::string("a\0b", 3));
  EXPECT_EQ(read_text(files_, directory_ / "f", 3), std::string("a\0b", 3));
  const Error error = error_of([&] { read_text(files_, directory_ / "f", 2); });
  EXPECT_EQ(error.code(), Errc::out_of_memory);
  EXPECT_EQ(error.id(), "RM605");
  EXPECT_THAT(error.what(), HasSubstr("it has 3 bytes, but at most 2"));
}

TEST(CheckComponent, TakesOnePlainComponent) {
  for (const std::string& name :
       {std::string("config.json"), std::string("..."), std::string(".hidden"),
        std::string("with space"), std::string("\u00e9"), std::string(255, 'a')}) {
    EXPECT_NO_THROW(check_component(name, "f")) << name;
  }
}

TEST(CheckComponent, RefusesAnythingElse) {
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"), std::string("/"),
        std::string("/etc/passwd"), std::string("a\0b", 3), std::string("a\nb"),
        std::string("a\x7f"), std::string(256, 'a')}) {
    const Error error = error_of([&] { check_component(name, "index.json"); });
    EXPECT_EQ(error.code(), Errc::unsafe) << name;
    EXPECT_EQ(error.id(), "RM603") << name;
  }
  EXPECT_THAT(error_of([] { check_component("a/\x1b", "index.json"); }).what(),
              StrEq("cannot use the file name \"a/\\x1b\" that 'index.json' gives: it is not one "
                    "plain path component of 1 to 255 bytes"));
}

}  // namespace
}  // namespace remesh
