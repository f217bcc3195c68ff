#include "remesh/store/resuming_file_system.hpp"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "native_fixture.hpp"
#include "temporary_directory.hpp"

namespace remesh::test {
namespace {

namespace fs = std::filesystem;

// Counts what is truly written.
class CountingFiles final : public ForwardingFileSystem {
 public:
  std::int64_t written = 0;
  int synced = 0;

  CountingFiles() : ForwardingFileSystem(posix_file_system()) {}

  std::unique_ptr<File> create(const Path& path) override { return wrap(inner().create(path)); }
  std::unique_ptr<File> open_for_writing(const Path& path) override {
    return wrap(inner().open_for_writing(path));
  }

 private:
  class Counted final : public File {
   public:
    Counted(std::unique_ptr<File> inner, CountingFiles& files)
        : inner_(std::move(inner)), files_(files) {}
    void read_at(std::int64_t offset, std::span<std::byte> into) const override {
      inner_->read_at(offset, into);
    }
    void write_at(std::int64_t offset, std::span<const std::byte> from) override {
      files_.written += std::ssize(from);
      inner_->write_at(offset, from);
    }
    std::int64_t size_bytes() const override { return inner_->size_bytes(); }
    void sync() override {
      ++files_.synced;
      inner_->sync();
    }
    void forget_cache() noexcept override { inner_->forget_cache(); }

   private:
    std::unique_ptr<File> inner_;
    CountingFiles& files_;
  };

  std::unique_ptr<File> wrap(std::unique_ptr<File> file) {
    return std::make_unique<Counted>(std::move(file), *this);
  }
};

class ResumingTest : public ::testing::Test {
 protected:
  ResumingTest() { fs::create_directory(staging_); }

  std::string write(const fs::path& path, std::string_view text, std::int64_t offset = 0) {
    resuming_.create(path)->write_at(offset, std::as_bytes(std::span(text)));
    return content_of(path);
  }

  TemporaryDirectory directory_;
  fs::path staging_ = directory_ / ".out.remesh-0123";
  CountingFiles files_;
  ResumingFileSystem resuming_{files_};
};

TEST_F(ResumingTest, WhatIsThereIsNotWrittenAgain) {
  set_content(staging_ / "file", "what was written");
  EXPECT_EQ(write(staging_ / "file", "what was written"), "what was written");
  EXPECT_EQ(files_.written, 0);
  EXPECT_EQ(files_.synced, 1) << "a page that was lost must not count because it is in memory";
  EXPECT_EQ(resuming_.kept_bytes(), 16);
}

TEST_F(ResumingTest, WhatDiffersIsMended) {
  set_content(staging_ / "file", "what was written");
  EXPECT_EQ(write(staging_ / "file", "that was"), "that was written");
  EXPECT_EQ(files_.written, 8);
}

TEST_F(ResumingTest, WhatIsNotThereIsWritten) {
  set_content(staging_ / "file", "half");
  EXPECT_EQ(write(staging_ / "file", "half and half"), "half and half");
  EXPECT_EQ(write(staging_ / "new", "all"), "all");
  EXPECT_EQ(files_.written, 13 + 3);
}

TEST_F(ResumingTest, ALongWriteIsComparedPartByPart) {
  std::string text(std::size_t{1} << 20, 'x');
  set_content(staging_ / "file", text);
  text[700'000] = 'y';
  EXPECT_TRUE(write(staging_ / "file", text) == text);
  EXPECT_EQ(files_.written, 256 << 10);
}

TEST_F(ResumingTest, AFileThatWasFoundIsComparedWhoeverOpensIt) {
  set_content(staging_ / "file", "old");
  resuming_.create(staging_ / "file");
  resuming_.open_for_writing(staging_ / "file")->write_at(0, bytes_of("old"));
  EXPECT_EQ(files_.written, 0);
}

// Whoever opens it last has written the least of it.
TEST_F(ResumingTest, AFileThatIsLongerThanItShouldBeIsNotPublished) {
  const fs::path file = staging_ / "file";
  set_content(file, "whole and more");
  write(file, "whole");
  resuming_.open_for_writing(file)->write_at(0, bytes_of("w"));
  try {
    resuming_.rename_no_replace(staging_, directory_ / "out");
    FAIL() << "published";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::unsafe);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("it has 14 bytes, but this job writes 5"));
  }
  EXPECT_TRUE(fs::exists(file)) << "it stays for whoever wants to see";
  set_content(file, "whole");
  resuming_.rename_no_replace(staging_, directory_ / "out");
  EXPECT_EQ(content_of(directory_ / "out" / "file"), "whole");
}

TEST_F(ResumingTest, ElsewhereNothingIsTakenOver) {
  set_content(directory_ / "file", "somebody's");
  EXPECT_THROW(resuming_.create(directory_ / "file"), Error);
  EXPECT_THROW(resuming_.create_directory(staging_), Error);
  fs::create_directory(staging_ / "side");
  EXPECT_NO_THROW(resuming_.create_directory(staging_ / "side"));
  set_content(staging_ / "side" / "config.json", "{}");
  EXPECT_NO_THROW(resuming_.create(staging_ / "side" / "config.json"));
}

}  // namespace
}  // namespace remesh::test
