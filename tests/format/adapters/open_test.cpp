#include "remesh/adapters/open.hpp"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remesh/core/error.hpp"
#include "safetensors/hf_files.hpp"
#include "temporary_directory.hpp"

namespace remesh {
namespace {

namespace fs = std::filesystem;
using test::plain_file;
using test::put;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Reader> opened(const fs::path& path, std::string_view from = {}) {
  StrictFindings findings;
  return open_reader(posix_file_system(), path, from, findings);
}

void expect_refused(const fs::path& path, std::string_view from, Errc code, const std::string& id,
                    const std::string& says) {
  try {
    opened(path, from);
    FAIL() << "opened " << path;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_EQ(error.id(), id);
    EXPECT_THAT(error.what(), HasSubstr(says));
  }
}

class Open : public ::testing::Test {
 protected:
  std::string format_of(const fs::path& path) {
    return detect_format(posix_file_system(), path).value_or("none");
  }

  test::TemporaryDirectory directory_;
};

TEST(Formats, AreNamedAsTheFlagsNameThem) {
  EXPECT_THAT(format_names(), ElementsAre("remesh", "hf"));
}

TEST_F(Open, DetectsAHuggingFaceDirectoryByItsFiles) {
  put(directory_ / "weights/x.safetensors", "");
  put(directory_ / "index/model.safetensors.index.json", "");
  put(directory_ / "other/config.json", "{}");
  fs::create_directories(directory_ / "folder/x.safetensors");
  EXPECT_EQ(format_of(directory_ / "weights"), "hf");
  EXPECT_EQ(format_of(directory_ / "index"), "hf");
  EXPECT_EQ(format_of(directory_ / "other"), "none");
  EXPECT_EQ(format_of(directory_ / "folder"), "none");
  EXPECT_EQ(format_of(directory_ / "absent"), "none");
}

TEST_F(Open, DetectsASingleFileByItsNameOrByItsBeginning) {
  put(directory_ / "empty.safetensors", "");
  put(directory_ / "blob", plain_file({{"a", "x"}}));
  put(directory_ / "text", "12345678[]");
  put(directory_ / "huge", std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10));
  put(directory_ / "short", std::string("\x02\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(format_of(directory_ / "empty.safetensors"), "hf");
  EXPECT_EQ(format_of(directory_ / "blob"), "hf");
  EXPECT_EQ(format_of(directory_ / "text"), "none");
  EXPECT_EQ(format_of(directory_ / "huge"), "none");
  EXPECT_EQ(format_of(directory_ / "short"), "none");
}

TEST_F(Open, FollowsALinkThatTheUserNames) {
  put(directory_ / "run/step-2/model.safetensors", plain_file({{"a", "x"}}));
  fs::create_directory_symlink("step-2", directory_ / "run/latest");
  fs::create_symlink("run/step-2/model.safetensors", directory_ / "file.safetensors");
  EXPECT_EQ(format_of(directory_ / "run/latest"), "hf");
  EXPECT_EQ(opened(directory_ / "run/latest")->catalog().tensors.size(), 1);
  EXPECT_EQ(opened(directory_ / "file.safetensors")->catalog().tensors.size(), 1);
}

TEST_F(Open, SaysWhatItFoundWhereThereIsNoCheckpoint) {
  put(directory_ / "file", "12345");
  put(directory_ / "d/c", "");
  put(directory_ / "d/a", "");
  put(directory_ / "d/b", "");
  put(directory_ / "d/d", "");
  fs::create_directory(directory_ / "empty");
  fs::create_symlink("nowhere", directory_ / "dangling");
  const auto refused = [&](const char* name, const char* says) {
    expect_refused(directory_ / name, {}, Errc::not_found, "RM101", says);
  };
  refused("absent", "absent': there is nothing of that name");
  refused("file",
          "file': it is a file of 5 bytes, but no checkpoint of a known format (remesh, hf)");
  refused("d", "d': it is a directory of 4 entries (a, b, c, ...), but no checkpoint");
  refused("empty", "empty': it is an empty directory, but");
  refused("dangling", "dangling': it is a link that leads nowhere, but");
}

TEST_F(Open, TakesTheFormatThatTheUserNames) {
  put(directory_ / "weights", plain_file({{"a", "x"}}));
  EXPECT_EQ(opened(directory_ / "weights", "hf")->catalog().format, "hf");
  fs::create_directory(directory_ / "empty");
  expect_refused(directory_ / "empty", "hf", Errc::not_found, "RM101", "no *.safetensors file");
  expect_refused(directory_ / "absent", "hf", Errc::not_found, "RM101", "nothing of that name");
  expect_refused(directory_ / "weights", "gguf", Errc::invalid_argument, "",
                 "cannot use the format 'gguf': there are remesh, hf");
}

TEST_F(Open, AWriterIsChosenByTheFormatOfTheCatalog) {
  Catalog wanted;
  wanted.format = "hf";
  const auto side = [](const SideFile&) { return std::vector<std::byte>{}; };
  const WriterOptions options{.job_id = "1"};
  const auto writer = create_writer(posix_file_system(), directory_ / "out", wanted, side, options);
  writer->seal({}, {});
  writer->publish();
  EXPECT_EQ(format_of(directory_ / "out"), "hf");
  wanted.format = "gguf";
  EXPECT_THROW(create_writer(posix_file_system(), directory_ / "out2", wanted, side, options),
               Error);
}

}  // namespace
}  // namespace remesh
