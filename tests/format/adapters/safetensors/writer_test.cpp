#include "safetensors/writer.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hf_files.hpp"
#include "numbered_tensor.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/open_files.hpp"
#include "safetensors/reader.hpp"
#include "temporary_directory.hpp"

namespace remesh::safetensors {
namespace {

namespace fs = std::filesystem;
using test::content_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

const WriterOptions options{.job_id = "0123456789abcdef"};

WriterOptions with_shards_of(std::int64_t bytes) {
  WriterOptions result = options;
  result.shard_size_bytes = bytes;
  return result;
}

std::vector<std::byte> no_side(const SideFile& side) {
  ADD_FAILURE() << "asked for " << side.name;
  return {};
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

// Every kind of element, a scalar, empty tensors, and sizes that leave nothing aligned.
Catalog every_kind() {
  Catalog catalog;
  catalog.format = "hf";
  for (const DType dtype : all_dtypes()) {
    catalog.tensors.push_back({"t." + std::string(to_string(dtype)), dtype, Box{{0, 3}, {0, 8}}});
  }
  catalog.tensors.push_back({"scalar", DType::u8, Box{}});
  catalog.tensors.push_back({"empty", DType::f32, Box{{0, 0}, {0, 4}}});
  catalog.tensors.push_back({"odd", DType::u8, Box{{0, 5}}});
  catalog.layout = Layout::replicated(Mesh{}, catalog.tensors.size());
  return catalog;
}

void write_all(Writer& writer) {
  const auto& tensors = writer.catalog().tensors;
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    writer.write(k, tensors[k].extent, test::numbered(tensors[k]), {});
  }
}

void finish(Writer& writer) {
  writer.seal({}, {});
  EXPECT_TRUE(writer.publish());
}

class HfWriterTest : public ::testing::Test {
 protected:
  std::unique_ptr<Writer> create_at_out(Catalog catalog, const WriterOptions& how = options,
                                        const SideSource& side = no_side) {
    return create(posix_file_system(), out(), std::move(catalog), side, how);
  }
  fs::path out() const { return directory_ / "out"; }

  test::TemporaryDirectory directory_;
};

// Bytes of safetensors 0.8.0: save({"b": f32 [1.0], "a": u8 [7, 8, 9]}, {"format": "pt"}).
TEST_F(HfWriterTest, WritesTheBytesOfTheReferenceWriter) {
  Catalog catalog;
  catalog.format = "hf";
  catalog.tensors = {{"a", DType::u8, Box{{0, 3}}}, {"b", DType::f32, Box{{0, 1}}}};
  const auto writer = create_at_out(catalog);
  writer->write(0, Box{{0, 3}}, test::as_bytes("\x07\x08\x09"), {});
  writer->write(1, Box{{0, 1}}, test::as_bytes(std::string("\0\0\x80\x3f", 4)), {});
  finish(*writer);

  const std::string text =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
      R"("a":{"dtype":"U8","shape":[3],"data_offsets":[4,7]}}       )";
  ASSERT_EQ(text.size(), 0x90);
  EXPECT_EQ(
      content_of(out() / "model.safetensors"),
      std::string("\x90\0\0\0\0\0\0\0", 8) + text + std::string("\0\0\x80\x3f\x07\x08\x09", 7));
  EXPECT_THAT(names_in(directory_.path()), ElementsAre("out"));
  EXPECT_THAT(names_in(out()), ElementsAre("model.safetensors"));
}

TEST_F(HfWriterTest, WhatItWritesTheReaderReads) {
  for (const std::int64_t shard_bytes : {20, 100, 1'000'000}) {
    fs::remove_all(out());
    const auto writer = create_at_out(every_kind(), with_shards_of(shard_bytes));
    write_all(*writer);
    finish(*writer);

    StrictFindings findings;
    const auto reader = open(posix_file_system(), out(), findings);
    ASSERT_EQ(reader->catalog().tensors.size(), every_kind().tensors.size());
    for (const TensorDesc& tensor : every_kind().tensors) {
      const std::size_t number = reader->catalog().find(tensor.name).value();
      ASSERT_EQ(reader->catalog().tensors[number], tensor);
      std::vector<std::byte> bytes(static_cast<std::size_t>(num_bytes(tensor)));
      reader->read(number, tensor.extent, bytes, {});
      EXPECT_EQ(test::what_differs(tensor, tensor.extent, bytes), "");
    }
  }
}

TEST_F(HfWriterTest, WritesRowsWhereTheyBelongAndTellsTheTapWhere) {
  Catalog catalog;
  catalog.format = "hf";
  catalog.tensors = {{"small", DType::u8, Box{{0, 3}}}, {"rows", DType::bf16, Box{{0, 4}, {0, 2}}}};
  const auto writer = create_at_out(catalog, with_shards_of(4));
  const TensorDesc& rows = writer->catalog().tensors[1];
  std::vector<std::tuple<std::uint32_t, std::int64_t, std::size_t>> heard;
  for (const Box& box : {Box{{3, 4}, {0, 2}}, Box{{0, 3}, {0, 2}}, Box{{0, 0}, {0, 2}}}) {
    writer->write(1, box, test::numbered(rows, box),
                  [&](std::uint32_t file, std::int64_t offset, std::span<const std::byte> bytes) {
                    heard.emplace_back(file, offset, bytes.size());
                  });
  }
  finish(*writer);

  const std::string content = content_of(out() / "model-00001-of-00002.safetensors");
  const auto data = static_cast<std::int64_t>(content.size()) - 16;
  EXPECT_THAT(heard, ElementsAre(std::tuple(0, data + 12, 4), std::tuple(0, data, 12)));
  EXPECT_EQ(
      test::what_differs(rows, rows.extent, test::as_bytes(content.substr(content.size() - 16))),
      "");
}

// What a file's bytes say of places, before and after the payload is there, is what was promised.
TEST_F(HfWriterTest, TheFilesHaveTheirHeadersAndSizesFromTheBeginning) {
  const auto writer = create_at_out(every_kind(), with_shards_of(100));
  EXPECT_GT(writer->extents().files().size(), 3);
  EXPECT_TRUE(writer->extents_on_medium().same_places(writer->extents()));
  write_all(*writer);
  EXPECT_TRUE(writer->extents_on_medium().same_places(writer->extents()));
}

TEST_F(HfWriterTest, ReopensWithTheNumbersThatWereWanted) {
  Catalog catalog = every_kind();
  std::ranges::reverse(catalog.tensors);
  const auto writer = create_at_out(catalog, with_shards_of(100));
  write_all(*writer);
  writer->seal({}, {});
  const auto reader = writer->reopen();
  EXPECT_EQ(reader->catalog().tensors, catalog.tensors);
  EXPECT_EQ(reader->catalog().packaging.file_of, writer->catalog().packaging.file_of);
  EXPECT_TRUE(reader->extents().same_places(writer->extents()));
  for (std::size_t k = 0; k < catalog.tensors.size(); ++k) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(num_bytes(catalog.tensors[k])));
    reader->read(k, catalog.tensors[k].extent, bytes, {});
    EXPECT_EQ(test::what_differs(catalog.tensors[k], catalog.tensors[k].extent, bytes), "");
  }
}

void expect_refused(const std::function<void()>& what, Errc code, const std::string& says) {
  try {
    what();
    FAIL() << "not refused: " << says;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(says));
  }
}

TEST_F(HfWriterTest, NoticesThatAHeaderOnTheMediumSaysSomethingElse) {
  const auto writer = create_at_out(every_kind());
  const fs::path file = directory_ / ".out.remesh-0123456789abcdef/model.safetensors";
  std::string content = content_of(file);
  content.replace(content.find("\"odd\""), 5, "\"add\"");
  std::ofstream(file, std::ios::binary) << content;
  expect_refused([&] { writer->extents_on_medium(); }, Errc::internal, "'add'");
}

TEST_F(HfWriterTest, WritesSideFilesAndTheIndex) {
  Catalog catalog = every_kind();
  const std::string config = "{\"model_type\": \"llama\"}";
  catalog.side = {
      {"config.json", static_cast<std::int64_t>(config.size()), digest_of(test::as_bytes(config))}};
  const auto source = [&](const SideFile& side) {
    EXPECT_EQ(side.name, "config.json");
    const auto bytes = test::as_bytes(config);
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  const auto writer = create_at_out(catalog, with_shards_of(1000), source);
  write_all(*writer);
  finish(*writer);
  EXPECT_EQ(content_of(out() / "config.json"), config);
  EXPECT_EQ(content_of(out() / "model.safetensors.index.json"),
            writer->catalog().packaging.index_text);
  EXPECT_THAT(
      names_in(out()),
      UnorderedElementsAre("config.json", "model-00001-of-00002.safetensors",
                           "model-00002-of-00002.safetensors", "model.safetensors.index.json"));
}

// The steps are in the payload, which is not there when places are asked for.
TEST_F(HfWriterTest, WritesAnOptimizerThatSaysItsStepTwice) {
  Catalog catalog;
  catalog.format = "hf";
  catalog.tensors = {{"w", DType::f32, Box{{0, 2}}}, {"w@step", DType::f32, Box{}}};
  catalog.packaging.files = {{"model.safetensors", {}, {}},
                             {"optimizer.safetensors", {{"step", "400"}}, {}}};
  catalog.packaging.file_of = {0, 1};
  const auto writer = create_at_out(catalog);
  EXPECT_TRUE(writer->extents_on_medium().same_places(writer->extents()));
  const float step = 400;
  writer->write(0, Box{{0, 2}}, test::numbered(catalog.tensors[0]), {});
  writer->write(1, Box{}, std::as_bytes(std::span(&step, 1)), {});
  finish(*writer);
  StrictFindings findings;
  EXPECT_NE(open(posix_file_system(), out(), findings), nullptr);
}

TEST_F(HfWriterTest, RefusesASideFileThatChanged) {
  Catalog catalog = every_kind();
  catalog.side = {{"config.json", 2, digest_of(test::as_bytes("{}"))}};
  const auto writer = create_at_out(
      catalog, options, [](const SideFile&) { return std::vector<std::byte>(2, std::byte{'['}); });
  expect_refused([&] { writer->seal({}, {}); }, Errc::corrupt, "config.json");
}

TEST_F(HfWriterTest, RefusesASideFileWithTheNameOfAWeightFileOrAPath) {
  for (const auto& [name, code] : std::vector<std::pair<std::string, Errc>>{
           {"model.safetensors", Errc::unsupported},
           {"model.safetensors.index.json", Errc::unsupported},
           {"optimizer.safetensors", Errc::unsupported},
           {"other.safetensors", Errc::unsupported},
           {"../config.json", Errc::unsafe}}) {
    Catalog catalog = every_kind();
    catalog.side = {{name, 0, {}}};
    expect_refused([&] { create_at_out(catalog); }, code, name);
  }
  EXPECT_TRUE(fs::is_empty(directory_.path()));
}

TEST_F(HfWriterTest, LeavesNothingBehindUnlessItIsPublished) {
  {
    const auto writer = create_at_out(every_kind());
    write_all(*writer);
    writer->seal({}, {});
    EXPECT_THAT(names_in(directory_.path()), ElementsAre(".out.remesh-0123456789abcdef"));
  }
  EXPECT_TRUE(fs::is_empty(directory_.path()));
}

TEST_F(HfWriterTest, SaysHowMuchRoomIsMissing) {
  Catalog catalog;
  catalog.format = "hf";
  catalog.tensors = {{"huge", DType::u8, Box{{0, Index{1} << 59}}}};
  expect_refused([&] { create_at_out(catalog); }, Errc::io, "it needs 512.0 PiB (57646075230");
  EXPECT_TRUE(fs::is_empty(directory_.path()));
}

// A copy of what `source` reads, through Reader and Writer alone.
void copy_through_remesh(const fs::path& source, const fs::path& target) {
  StrictFindings findings;
  const auto reader = open(posix_file_system(), source, findings);
  const auto writer = create(
      posix_file_system(), target, reader->catalog(),
      [&](const SideFile& side) { return reader->side(side); }, options);
  for (std::size_t k = 0; k < reader->catalog().tensors.size(); ++k) {
    const TensorDesc& tensor = reader->catalog().tensors[k];
    std::vector<std::byte> bytes(static_cast<std::size_t>(num_bytes(tensor)));
    reader->read(k, tensor.extent, bytes, {});
    writer->write(k, tensor.extent, bytes, {});
  }
  finish(*writer);
}

void expect_same_files(const fs::path& left, const fs::path& right) {
  ASSERT_EQ(names_in(left), names_in(right));
  for (const std::string& name : names_in(left)) {
    EXPECT_TRUE(content_of(left / name) == content_of(right / name)) << name;
  }
}

TEST_F(HfWriterTest, ACopyOfWhatTransformersWroteIsTheSameByteForByte) {
  for (const char* name : {"llama-gqa", "llama-gqa-sharded"}) {
    const fs::path source = fs::path(REMESH_SOURCE_DIR) / "fixtures" / name;
    copy_through_remesh(source, directory_ / name);
    expect_same_files(source, directory_ / name);
  }
}

TEST_F(HfWriterTest, ACopyOfPublishedFilesIsTheSameByteForByte) {
  const fs::path real = fs::path(REMESH_SOURCE_DIR) / "../shared/data/real";
  if (!fs::exists(real)) GTEST_SKIP() << "did not run: there is no " << real;
  for (const char* name : {"runai/test.safetensors", "burn/multi_layer.safetensors",
                           "stories260K_hf_derived/model.safetensors", "safetensors_jl/sharded"}) {
    const fs::path target = directory_ / "copy";
    fs::remove_all(target);
    copy_through_remesh(real / name, target);
    if (fs::is_directory(real / name)) {
      expect_same_files(real / name, target);
    } else {
      const std::string file = fs::path(name).filename().string();
      EXPECT_TRUE(content_of(real / name) == content_of(target / file)) << name;
    }
  }
}

TEST_F(HfWriterTest, MoreFilesThanMayBeOpen) {
  Catalog catalog;
  catalog.format = "hf";
  for (std::size_t k = 0; k < OpenFiles::most_open + 8; ++k) {
    catalog.tensors.push_back({"t" + std::to_string(k), DType::u8, Box{{0, 2}}});
  }
  const auto writer = create_at_out(catalog, with_shards_of(2));
  for (const Box& half : {Box{{0, 1}}, Box{{1, 2}}}) {
    for (std::size_t k = 0; k < catalog.tensors.size(); ++k) {
      writer->write(k, half, test::numbered(catalog.tensors[k], half), {});
    }
  }
  writer->seal({}, {});
  const auto reader = writer->reopen();
  for (std::size_t k = 0; k < catalog.tensors.size(); ++k) {
    std::vector<std::byte> bytes(2);
    reader->read(k, catalog.tensors[k].extent, bytes, {});
    EXPECT_EQ(test::what_differs(catalog.tensors[k], catalog.tensors[k].extent, bytes), "");
  }
}

}  // namespace
}  // namespace remesh::safetensors
