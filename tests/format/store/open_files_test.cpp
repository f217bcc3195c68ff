#include "remesh/store/open_files.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "faulty_file_system.hpp"
#include "native_fixture.hpp"
#include "temporary_directory.hpp"

namespace remesh {
namespace {

namespace fs = std::filesystem;

class OpenFilesTest : public ::testing::Test {
 protected:
  std::vector<fs::path> paths(std::size_t count) {
    std::vector<fs::path> made;
    for (std::size_t k = 0; k < count; ++k) {
      made.push_back(directory_ / std::to_string(k));
      test::set_content(made.back(), "");
    }
    return made;
  }

  test::TemporaryDirectory directory_;
};

TEST_F(OpenFilesTest, KeepsTheLastOnesOpenAndSyncsWhatItCloses) {
  test::FaultyFileSystem files(posix_file_system());
  OpenFiles open(files, paths(3), /*most=*/2);
  const auto first = open.get(0);
  open.get(1);
  EXPECT_EQ(open.get(0), first);
  EXPECT_EQ(files.calls(), 2) << "two files were opened";
  open.get(2);
  EXPECT_EQ(files.calls(), 4) << "1 was synced, then 2 was opened";
  EXPECT_EQ(open.get(0), first) << "0 was asked for after 1";
  first->write_at(0, test::bytes_of("x"));
  EXPECT_EQ(test::content_of(directory_ / "0"), "x");
}

TEST_F(OpenFilesTest, WhatSomebodyHoldsStaysOpen) {
  OpenFiles open(posix_file_system(), paths(3), /*most=*/1);
  const auto held = open.get(0);
  std::weak_ptr<File> dropped = open.get(1);
  EXPECT_FALSE(dropped.expired());
  open.get(2);
  EXPECT_TRUE(dropped.expired());
  EXPECT_NO_THROW(held->write_at(0, test::bytes_of("x")));
}

TEST_F(OpenFilesTest, SyncsEveryFileOnce) {
  test::FaultyFileSystem files(posix_file_system());
  OpenFiles open(files, paths(3));
  for (std::uint32_t k = 0; k < 3; ++k) open.get(k);
  ASSERT_EQ(files.calls(), 3);
  open.sync_all();
  EXPECT_EQ(files.calls(), 6);
}

}  // namespace
}  // namespace remesh
