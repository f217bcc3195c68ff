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

#include "remesh/core/error.hpp"
#include "remesh/models/model_map.hpp"
#include "remesh/schema/mesh_text.hpp"
#include "remesh/schema/pieces.hpp"

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
                                     {"Mixtral-8x7B", 2, 995, "tp=4,pp=4,dp=2,ep=8"},
                                     {"WizardLM-2-8x22B", 2, 1739, "tp=8,pp=7,ep=4,etp=2"},
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

Index layers_of(const json& config) {
  const char* const key = config.contains("n_layer") ? "n_layer" : "num_hidden_layers";
  const Index mtp = config.value("num_nextn_predict_layers", Index{0});
  return config[key].get<Index>() + mtp;
}

TEST(PublishedConfigs, AreReadWhetherAMapFitsOrNot) {
  REMESH_NEEDS_REAL_DATA();
  const std::set<std::string> fitting{"llama",   "mistral",   "qwen2",       "qwen3",   "gpt2",
                                      "mixtral", "qwen3_moe", "deepseek_v3", "gpt_oss", "kimi_k2"};
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
    if (entry.path().filename() == "Kimi2-PCL.config.json") {
      // It leaves out what it has in common with another.
      EXPECT_THROW((void)map->needed_tensors(config, DType::bf16), Error);
      continue;
    }
    EXPECT_GT(map->needed_tensors(config, DType::bf16).size(), 250U);
    EXPECT_EQ(std::ssize(map->stage_costs(config).layers), layers_of(json::parse(config)));
  }
  EXPECT_EQ(fit, 18);
  EXPECT_EQ(others, 5) << "DeepSeek-V3.2, Gemma 4, GLM-5, Llama 4, Nemotron 3";
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
      {"Qwen--Qwen3-32B", 32'762'123'264},
      {"openai-community--gpt2-large", 774'030'080},
      {"mistralai--Mixtral-8x7B-v0.1", 46'702'792'704},
      {"Qwen--Qwen3-30B-A3B", 30'532'122'624},
      {"Qwen--Qwen3-235B-A22B", 235'093'634'560}};
  for (const auto& [model, parameters] : table) {
    const std::string config = text_of(real() / "configs" / (std::string(model) + ".config.json"));
    Index elements = 0;
    for (const TensorDesc& tensor : shipped_map(config)->needed_tensors(config, DType::bf16)) {
      elements += tensor.extent.num_elements();
    }
    EXPECT_EQ(elements, parameters) << model;
  }
}

// Totals of mesh_advice 1.1, in thousands of millions, of what is no scale: 671.0 and 11.6 (with
// the copies of embedding and head that the MTP layer has of its own), 1,026.4, 116.8.
TEST(PublishedConfigs, OfModelsWithScalesAddUpToo) {
  REMESH_NEEDS_REAL_DATA();
  struct Row {
    const char* model;
    double billions;
    std::size_t num_tensors;
    Index per_packed_byte;  // elements in a byte of blocks
  };
  const std::vector<Row> table{{"deepseek-ai--DeepSeek-V3", 684.49, 91'991, 1},
                               {"deepseek-ai--DeepSeek-R1", 684.49, 91'991, 1},
                               {"moonshotai--Kimi-K2-Instruct", 1026.41, 139'583, 1},
                               {"openai--gpt-oss-120b", 116.83, 687, 2},
                               {"openai--gpt-oss-20b", 20.91, 459, 2},
                               {"Qwen--Qwen3-235B-A22B-FP8", 235.09, 73'417, 1}};
  for (const Row& row : table) {
    SCOPED_TRACE(row.model);
    const std::string config =
        text_of(real() / "configs" / (std::string(row.model) + ".config.json"));
    const auto tensors = shipped_map(config)->needed_tensors(config, DType::u8);
    EXPECT_EQ(tensors.size(), row.num_tensors);
    Index elements = 0;
    for (const TensorDesc& tensor : tensors) {
      if (tensor.name.ends_with("_scale_inv") || tensor.name.ends_with("_scales")) continue;
      const bool packed = tensor.name.ends_with("_blocks");
      elements += tensor.extent.num_elements() * (packed ? row.per_packed_byte : 1);
    }
    EXPECT_NEAR(static_cast<double>(elements) / 1e9, row.billions, 0.006);
  }
}

// On paper: tp 8 has 16 heads of DeepSeek-V3 each, 3,072 rows of q_b (24 blocks of 128), 4,096 of
// kv_b; ep 64 has four experts each.
TEST(PublishedConfigs, DeepSeekScalesLieWithTheirWeights) {
  REMESH_NEEDS_REAL_DATA();
  const std::string config = text_of(real() / "configs" / "deepseek-ai--DeepSeek-V3.config.json");
  const ModelMap& map = *shipped_map(config);
  const std::vector<TensorDesc> tensors = map.needed_tensors(config, DType::u8);
  const Layout layout = map.place(tensors, config, parse_mesh("tp=8,dp=8,pp=2,ep=64"));
  const Pieces pieces(layout, tensors);
  const auto held = [&](const std::string& name, Rank rank) {
    const auto found = std::ranges::find(tensors, name, &TensorDesc::name);
    EXPECT_NE(found, tensors.end()) << name;
    std::string text;
    for (const Box& box : pieces.on(static_cast<std::size_t>(found - tensors.begin()), rank)) {
      text += to_string(box);
    }
    return text;
  };
  const std::string q_b = "model.layers.5.self_attn.q_b_proj.weight";
  EXPECT_EQ(held(q_b, 3), "[9216, 12288) x [0, 1536)");
  EXPECT_EQ(held(q_b + "_scale_inv", 3), "[72, 96) x [0, 12)");
  EXPECT_EQ(held("model.layers.5.self_attn.o_proj.weight_scale_inv", 3), "[0, 56) x [48, 64)");
  const std::string expert = "model.layers.5.mlp.experts.13.up_proj.weight";
  EXPECT_EQ(held(expert, 3), "[0, 2048) x [0, 7168)") << "12 to 15 lie at ep 3";
  EXPECT_EQ(held(expert + "_scale_inv", 3), "[0, 16) x [0, 56)");
  EXPECT_EQ(held(expert, 4), "");
  EXPECT_EQ(held("model.layers.0.mlp.up_proj.weight_scale_inv", 3), "[54, 72) x [0, 56)")
      << "18,432 rows over 8 are 18 blocks each";
  EXPECT_EQ(held("model.layers.61.eh_proj.weight", 3), "") << "the last stage's";
  // tp 32 deals the 144 blocks of the dense MLP as 5 and 4.
  const Layout uneven = map.place(tensors, config, parse_mesh("tp=32,ep=32"));
  const auto number = [&](const std::string& name) {
    return static_cast<std::size_t>(std::ranges::find(tensors, name, &TensorDesc::name) -
                                    tensors.begin());
  };
  const Pieces dealt(uneven, tensors);
  const std::string up = "model.layers.0.mlp.up_proj.weight";
  EXPECT_EQ(to_string(dealt.on(number(up), 1).front()), "[640, 1280) x [0, 7168)");
  EXPECT_EQ(to_string(dealt.on(number(up + "_scale_inv"), 1).front()), "[5, 10) x [0, 56)");
  // A head of q_b is 192 rows, a block and a half: one for each rank would cut it.
  const Layout narrow = map.place(tensors, config, parse_mesh("tp=128,ep=128"));
  const Pieces cut(narrow, tensors);
  try {
    (void)cut.on(number(q_b), 1);
    ADD_FAILURE() << "a block was cut";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                testing::HasSubstr("would be cut at 192, but it is in blocks of 128"));
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
  EXPECT_EQ(Pieces(layout, tensors).of(0).size(), 4U) << tensors[0].name;
}

TEST(SmallCheckpoints, TheTiedStories260KIsPlacedAsItIs) {
  REMESH_NEEDS_REAL_DATA();
  const fs::path directory = real() / "stories260K_hf_derived";
  const std::string config = text_of(directory / "config.json");
  const std::vector<TensorDesc> tensors = header_of(directory / "model.safetensors");
  const Layout layout = shipped_map(config)->place(tensors, config, parse_mesh("tp=2,pp=5"));
  const Pieces pieces(layout, tensors);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const bool embedding = tensors[i].name == "model.embed_tokens.weight";
    for (const HeldBox& held : pieces.of(i)) {
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
