#include "remesh/execute/convert.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job.hpp"
#include "remesh/core/error.hpp"
#include "remesh/schema/pieces.hpp"
#include "temporary_directory.hpp"

namespace remesh {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const fs::path fixtures = fs::path(REMESH_SOURCE_DIR) / "fixtures";

Catalog two_tensors() {
  Catalog catalog;
  catalog.format = "hf";
  catalog.tensors = {{"b", DType::f32, Box{{0, 4}}}, {"a", DType::f32, Box{{0, 4}}}};
  catalog.layout = Layout::replicated(Mesh{}, 2);
  return catalog;
}

TEST(Converted, WithoutRulesEverythingIsReplicated) {
  const Catalog wanted = converted(two_tensors(), "remesh", parse_mesh("dp=2"), nullptr, {});
  EXPECT_EQ(wanted.format, "remesh");
  EXPECT_EQ(Pieces(wanted.layout, wanted.tensors).of(0)[0].holders, (std::vector<Rank>{0, 1}));
}

TEST(Converted, WithoutRulesNothingCanBeSplit) {
  for (const char* mesh : {"tp=2", "pp=2"}) {
    try {
      converted(two_tensors(), "remesh", parse_mesh(mesh), nullptr, {});
      ADD_FAILURE() << "split by no rule over " << mesh;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::unsupported);
      EXPECT_THAT(error.what(), HasSubstr("--rules FILE"));
    }
  }
}

TEST(Converted, AHuggingFaceDirectoryHasOneRankAndTheModelsOrder) {
  const auto reader = test::open_strictly(fixtures / "llama-gqa");
  const ModelMap* map = shipped_map(test::config_of(*reader));
  ASSERT_NE(map, nullptr);
  const Catalog wanted = converted(reader->catalog(), "hf", Mesh{}, map, test::config_of(*reader));
  EXPECT_EQ(wanted.layout.mesh().num_ranks(), 1);
  EXPECT_EQ(wanted.tensors.front().name, "model.embed_tokens.weight");
  EXPECT_EQ(wanted.tensors.back().name, "lm_head.weight");
  ASSERT_EQ(wanted.packaging.file_of.size(), wanted.tensors.size());
}

TEST(Converted, EachTensorKeepsItsFileWhenTheOrderChanges) {
  const auto reader = test::open_strictly(fixtures / "llama-gqa-sharded");
  const Catalog& source = reader->catalog();
  const std::string config = test::config_of(*reader);
  const Catalog wanted = converted(source, "hf", Mesh{}, shipped_map(config), config);
  for (std::size_t at = 0; at < wanted.tensors.size(); ++at) {
    const auto from = source.find(wanted.tensors[at].name);
    ASSERT_TRUE(from);
    EXPECT_EQ(wanted.packaging.file_of[at], source.packaging.file_of[*from]);
  }
}

// One file with a tensor of every dtype, a scalar and an empty one, made here as the format says.
fs::path every_dtype(const fs::path& directory) {
  std::string header = "{";
  std::int64_t end = 0;
  const auto add = [&](const std::string& name, const std::string& dtype, const std::string& shape,
                       std::int64_t bytes) {
    header += (header.size() == 1 ? "\"" : ",\"") + name + R"(":{"dtype":")" + dtype +
              R"(","shape":)" + shape + R"(,"data_offsets":[)" + std::to_string(end) + "," +
              std::to_string(end + bytes) + "]}";
    end += bytes;
  };
  const std::vector<std::pair<std::string, int>> dtypes{
      {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
      {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
      {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
      {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
      {"I64", 64},        {"U64", 64}};
  for (const auto& [dtype, bits] : dtypes) add("t." + dtype, dtype, "[3,8]", 3 * bits);
  add("odd rows", "F4", "[2,3]", 3);
  add("scalar", "F32", "[]", 4);
  add("empty", "BF16", "[0,5]", 0);
  header += "}";
  const auto length = static_cast<std::uint64_t>(header.size());
  std::ofstream file(directory / "model.safetensors", std::ios::binary);
  for (int byte = 0; byte < 8; ++byte) file.put(static_cast<char>(length >> (8 * byte)));
  file << header;
  for (std::int64_t at = 0; at < end; ++at) file.put(static_cast<char>(at * 37 + 11));
  return directory / "model.safetensors";
}

TEST(Convert, CarriesEveryDTypeAScalarAndAnEmptyTensorByteForByte) {
  const test::TemporaryDirectory directory;
  test::Machine machine;
  fs::create_directory(directory / "hf");
  const fs::path original = every_dtype(directory / "hf");
  test::run_job(machine, directory / "hf", directory / "ck", {.mesh = "dp=2"});
  EXPECT_TRUE(
      verify(machine.judge(), test::opener(directory / "ck"), Level::full).findings.empty());
  test::run_job(machine, directory / "ck", directory / "out", {.to = "hf"});
  const auto bytes_of = [](const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_EQ(bytes_of(directory / "out/model.safetensors"), bytes_of(original));
}

}  // namespace
}  // namespace remesh
