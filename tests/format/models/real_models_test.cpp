#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remesh/models/model_map.hpp"
#include "remesh/schema/mesh_text.hpp"

/// @file
/// The map that ships, on published models: their configs, their indexes, and two small
/// checkpoints.

namespace remesh {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path real() { return fs::path(REMESH_SOURCE_DIR) / "../shared/data/real"; }

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// Skips the test, and says so, where the published files are not there.
#define REMESH_NEEDS_REAL_DATA()                                  \
  if (!fs::exists(real())) {                                      \
    GTEST_SKIP() << "did not run: " << real() << " is not there"; \
  }

struct Published {
  const char* directory;
  int bytes_per_element;
  std::size_t num_tensors;
  const char* mesh;  // one that it was or could be trained on
};

TEST(PublishedIndexes, EveryTensorIsClaimedOnceAndTheBytesAddUp) {
  REMESH_NEEDS_REAL_DATA();
  const std::vector<Published> table{{"Reflection-Llama-3.1-70B", 4, 723, "tp=8,pp=4"},
                                     {"Devstral-Small-2507", 2, 363, "tp=16,pp=3"},
                                     {"cogito-v1-qwen-14B", 2, 579, "tp=8,pp=5,dp=2"}};
  for (const Published& published : table) {
    SCOPED_TRACE(published.directory);
    const fs::path directory = real() / "indexes" / published.directory;
    const std::string config = text_of(directory / "config.json");
    const json index = json::parse(text_of(directory / "model.safetensors.index.json"));
    const ModelMap* map = shipped_map(config);
    ASSERT_NE(map, nullptr);

    const auto dtype = published.bytes_per_element == 4 ? DType::f32 : DType::bf16;
    const std::vector<TensorDesc> needed = map->needed_tensors(config, dtype);
    std::multiset<std::string> expected;
    std::int64_t bytes = 0;
    for (const TensorDesc& tensor : needed) {
      expected.insert(tensor.name);
      bytes += num_bytes(tensor);
    }
    std::multiset<std::string> listed;
    for (const auto& [name, file] : index["weight_map"].items()) listed.insert(name);

    EXPECT_EQ(listed.size(), published.num_tensors);
    EXPECT_EQ(listed, expected);
    EXPECT_EQ(bytes, index["metadata"]["total_size"].get<std::int64_t>());
    EXPECT_EQ(map->place(needed, config, parse_mesh(published.mesh)).placed().size(),
              needed.size());
  }
}

TEST(PublishedConfigs, AreReadWhetherAMapFitsOrNot) {
  REMESH_NEEDS_REAL_DATA();
  const std::set<std::string> fitting{"llama", "mistral", "qwen2", "qwen3"};
  int fit = 0;
  int others = 0;
  for (const auto& entry : fs::directory_iterator(real() / "configs")) {
    SCOPED_TRACE(entry.path());
    const std::string config = text_of(entry.path());
    const ModelMap* map = shipped_map(config);
    ASSERT_EQ(map != nullptr,
              fitting.contains(json::parse(config)["model_type"].get<std::string>()));
    (map == nullptr ? others : fit) += 1;
    if (map == nullptr) continue;
    EXPECT_GT(map->needed_tensors(config, DType::bf16).size(), 250U);
  }
  EXPECT_EQ(fit, 6) << "three Llama 3.1 and three dense Qwen3";
  EXPECT_GT(others, 10);
}

// The number of parameters that Meta and the Qwen team publish.
TEST(PublishedConfigs, GiveTheNumberOfParameters) {
  REMESH_NEEDS_REAL_DATA();
  const std::vector<std::pair<const char*, Index>> table{
      {"meta-llama--Meta-Llama-3.1-8B", 8'030'261'248},
      {"meta-llama--Meta-Llama-3.1-70B", 70'553'706'496},
      {"meta-llama--Meta-Llama-3.1-405B", 405'853'388'800},
      {"Qwen--Qwen3-0.6B", 596'049'920},
      {"Qwen--Qwen3-8B", 8'190'735'360},
      {"Qwen--Qwen3-32B", 32'762'123'264}};
  for (const auto& [model, parameters] : table) {
    const std::string config = text_of(real() / "configs" / (std::string(model) + ".config.json"));
    Index elements = 0;
    for (const TensorDesc& tensor : shipped_map(config)->needed_tensors(config, DType::bf16)) {
      elements += tensor.extent.num_elements();
    }
    EXPECT_EQ(elements, parameters) << model;
  }
}

// The tensors of a safetensors file, in the order of their bytes.
std::vector<TensorDesc> header_of(const fs::path& path) {
  const std::string file = text_of(path);
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  const json header = json::parse(file.substr(sizeof length, length));
  std::vector<std::pair<std::int64_t, TensorDesc>> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const DType dtype = entry["dtype"] == "F32" ? DType::f32 : DType::bf16;
    tensors.push_back({entry["data_offsets"][0].get<std::int64_t>(),
                       {name, dtype, Box::whole(entry["shape"].get<std::vector<Index>>())}});
  }
  std::ranges::sort(tensors, {}, [](const auto& tensor) { return tensor.first; });
  std::vector<TensorDesc> sorted;
  for (const auto& [offset, tensor] : tensors) sorted.push_back(tensor);
  return sorted;
}

TEST(SmallCheckpoints, TheFixtureHasTheShapesOfItsConfig) {
  const fs::path directory = fs::path(REMESH_SOURCE_DIR) / "fixtures/llama-gqa";
  const std::string config = text_of(directory / "config.json");
  const std::vector<TensorDesc> tensors = header_of(directory / "model.safetensors");
  const ModelMap* map = shipped_map(config);
  ASSERT_NE(map, nullptr);
  EXPECT_THAT(tensors,
              testing::UnorderedElementsAreArray(map->needed_tensors(config, DType::bf16)));
  const Layout layout = map->place(tensors, config, parse_mesh("tp=4,pp=3"));
  EXPECT_EQ(layout.boxes(0, tensors[0]).size(), 4U) << tensors[0].name;
}

TEST(SmallCheckpoints, TheTiedStories260KIsPlacedAsItIs) {
  REMESH_NEEDS_REAL_DATA();
  const fs::path directory = real() / "stories260K_hf_derived";
  const std::string config = text_of(directory / "config.json");
  const std::vector<TensorDesc> tensors = header_of(directory / "model.safetensors");
  const Layout layout = shipped_map(config)->place(tensors, config, parse_mesh("tp=2,pp=5"));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const bool embedding = tensors[i].name == "model.embed_tokens.weight";
    for (const HeldBox& held : layout.boxes(i, tensors[i])) {
      const bool split = held.box != tensors[i].extent;
      EXPECT_EQ(held.holders.size(), (split ? 1U : 2U) * (embedding ? 2U : 1U)) << tensors[i].name;
    }
  }
}

TEST(Speed, PlacesAHundredThousandTensorsInATenthOfASecondOrSo) {
  std::string config = text_of(fs::path(REMESH_SOURCE_DIR) / "fixtures/llama-gqa/config.json");
  json deep = json::parse(config);
  deep["num_hidden_layers"] = 12000;
  config = deep.dump();
  const ModelMap* map = shipped_map(config);
  const std::vector<TensorDesc> tensors = map->needed_tensors(config, DType::bf16);
  EXPECT_GT(tensors.size(), 100000U);
  const auto start = std::chrono::steady_clock::now();
  const Layout layout = map->place(tensors, config, parse_mesh("tp=2,pp=2"));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::cout << "placed " << tensors.size() << " tensors in " << seconds.count() << " s\n";
  EXPECT_EQ(layout.placements().size(), 9U);
  EXPECT_LT(seconds.count(), 5) << "generous: sanitizers and a busy machine";
}

}  // namespace
}  // namespace remesh
