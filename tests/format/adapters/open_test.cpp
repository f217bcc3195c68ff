#include "remesh/adapters/open.hpp"

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

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
using ::testing::EndsWith;
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

TEST_F(Open, NamesTheFormatThatItLooksLike) {
  struct Look {
    const char* files;  // separated by spaces; a directory's name is followed by "/" and a file
    const char* says;
  };
  const std::vector<Look> looks{
      {".metadata __0_0.distcp", "it looks like PyTorch DCP, which this version does not read"},
      {"__3_0.distcp common.pt", "it looks like PyTorch DCP, which"},
      {"mp_rank_00/model_optim_rng.pt", "it looks like Megatron-LM, which"},
      {"common.pt metadata.json", "it looks like Megatron-LM, which"},
      {"iter_0000001/mp_rank_00/x iter_0000002/mp_rank_00/x", "it looks like Megatron-LM, which"},
      {"iter_0000001/.metadata", "it looks like PyTorch DCP, which"},
      {"mp_rank_00_model_states.pt zero_pp_rank_0_mp_rank_00_optim_states.pt",
       "it looks like DeepSpeed, which"},
      {"bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt", "it looks like DeepSpeed, which"},
      {"_CHECKPOINT_METADATA d/x", "it looks like Orbax, which"},
      {"_METADATA d/x", "it looks like Orbax, which"},
      {"pytorch_model.bin config.json", "it looks like PyTorch's pickles, which"},
      {"model.pt", "it looks like PyTorch's pickles, which"},
  };
  int number = 0;
  for (const Look& look : looks) {
    const fs::path place = directory_ / std::to_string(++number);
    std::istringstream names(look.files);
    for (std::string name; names >> name;) put(place / name, "x");
    SCOPED_TRACE(look.files);
    expect_refused(place, {}, Errc::not_found, "RM101", look.says);
  }
  put(directory_ / "model.pt", "x");
  expect_refused(directory_ / "model.pt", {}, Errc::not_found, "RM101", "PyTorch's pickles");
}

std::string refusal_of(const fs::path& path) {
  try {
    opened(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "opened";
}

TEST_F(Open, OfWhatIsNotEvidentNoFormatIsNamed) {
  put(directory_ / "d/.metadata/x", "");
  put(directory_ / "d/mp_rank_00", "");
  put(directory_ / "d/my.metadata", "");
  put(directory_ / "d/metadata.json", "");
  EXPECT_THAT(refusal_of(directory_ / "d"), EndsWith("known format (remesh, hf)"));
  put(directory_ / "one/a", "");
  EXPECT_THAT(refusal_of(directory_ / "one"), HasSubstr("a directory of 1 entry (a), but"));
}

TEST_F(Open, ADirectoryOfCheckpointsNamesOneAndACommandToCopy) {
  put(directory_ / "run 5/step-2/model.safetensors", plain_file({{"a", "x"}}));
  EXPECT_THAT(refusal_of(directory_ / "run 5"),
              EndsWith("; 'step-2' in it is one: name the one that you mean, or what `remesh "
                       "latest '" +
                       (directory_ / "run 5").string() + "'` prints"));
  fs::create_directories(directory_ / "links/0");
  fs::create_symlink("nowhere", directory_ / "links/1");
  fs::create_symlink("../run 5/step-2/model.safetensors", directory_ / "links/2");
  fs::create_directory_symlink("../run 5/step-2", directory_ / "links/3");
  EXPECT_THAT(refusal_of(directory_ / "links"), HasSubstr("; '3' in it is one: name"));
}

TEST_F(Open, OfADirectoryOfManyOnlyTheFirstAreLookedAt) {
  for (int k = 100; k < 163; ++k) {
    fs::create_directories(directory_ / "many" / std::to_string(k));
    put(directory_ / "many" / ("0" + std::to_string(k)), "a file costs no look");
  }
  put(directory_ / "many/200/model.safetensors", plain_file({{"a", "x"}}));
  EXPECT_THAT(refusal_of(directory_ / "many"), HasSubstr("; '200' in it is one"));
  fs::create_directories(directory_ / "many/163");
  EXPECT_THAT(refusal_of(directory_ / "many"), EndsWith("known format (remesh, hf)"));
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
