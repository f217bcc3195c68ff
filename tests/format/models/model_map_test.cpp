#include "remesh/models/model_map.hpp"

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remesh/schema/mesh_text.hpp"
#include "tiny_llama.hpp"

namespace remesh {
namespace {

using test::map_of;
using test::message_of;
using test::names_of;
using test::PlacedModel;
using test::tensors_of;
using test::tiny;
using test::with;
using test::without;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::StrEq;

TEST(StateDictOrder, DoesNotDependOnTheOrderOfTheTensors) {
  std::vector<TensorDesc> tensors = tensors_of(tiny);
  const std::vector<std::string> expected = names_of(tensors);
  tensors.push_back({"zeta", DType::f32, Box{}});
  tensors.push_back({"alpha", DType::f32, Box{}});
  for (unsigned seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::shuffle(tensors.begin(), tensors.end() - 2, random);
    std::vector<std::string> ordered;
    for (const std::size_t number : map_of(tiny).state_dict_order(tensors)) {
      ordered.push_back(tensors[number].name);
    }
    ASSERT_EQ(ordered.size(), expected.size() + 2);
    EXPECT_THAT(std::vector(ordered.begin(), ordered.end() - 2), ElementsAreArray(expected));
    EXPECT_EQ(ordered[expected.size()], "zeta") << "unordered ones keep their own order";
  }
}

// Distinct boxes are disjoint, so their elements add up to the tensor's exactly if none is missing.
TEST(Place, LeavesNoElementWithoutAHolder) {
  for (const char* tp : {"1", "2", "4", "8"}) {
    for (const char* pp : {"1", "2", "3", "4", "5", "6", "7"}) {
      const std::string mesh = std::string("tp=") + tp + ",pp=" + pp;
      SCOPED_TRACE(mesh);
      const PlacedModel placing(tiny, mesh);
      const Pieces pieces(placing.layout(), placing.tensors());
      for (std::size_t i = 0; i < placing.tensors().size(); ++i) {
        const TensorDesc& tensor = placing.tensors()[i];
        Index elements = 0;
        for (const HeldBox& held : pieces.of(i)) {
          elements += held.box.num_elements();
        }
        EXPECT_EQ(elements, tensor.extent.num_elements()) << tensor.name;
      }
    }
  }
}

TEST(Place, SharesPlacementsAmongLayers) {
  const PlacedModel placing(tiny, "tp=2,pp=2");
  // embed; q; k and v; o; gate and up; down; both norms of a layer; the last norm; lm_head
  EXPECT_EQ(placing.layout().placements().size(), 9U);
  EXPECT_EQ(placing.layout().placed()[1], (Placed{1, 0}));
  EXPECT_EQ(placing.layout().placed()[10], (Placed{1, 1})) << "q_proj of layer 1";
}

struct Illegal {
  const char* mesh;
  const char* message;
  std::string config = std::string(tiny);
  Errc code = Errc::invalid_argument;
};

TEST(Place, RefusesIllegalMeshes) {
  const std::string many_heads =
      with(without(without(without(tiny, R"("hidden_size": 64,)"), R"("num_attention_heads": 8,)"),
                   R"("num_key_value_heads": 4, )"),
           R"("hidden_size": 96, "num_attention_heads": 24, "num_key_value_heads": 4)");
  const std::string seven_heads = with(without(tiny, R"("num_attention_heads": 8,)"),
                                       R"("num_attention_heads": 7, "head_dim": 8)");
  // clang-format off
  const std::vector<Illegal> table{
      {"tp=3",      "cannot place the model on tp=3: it has 8 attention heads, which 3 does not divide; the nearest legal values are tp=2 and tp=4"},
      {"tp=16",     "cannot place the model on tp=16: it has 8 attention heads, which 16 does not divide; the nearest legal value is tp=8"},
      {"tp=6",      "cannot place the model on tp=6: it has 8 attention heads, which 6 does not divide; the nearest legal values are tp=4 and tp=8"},
      {"tp=6",      "cannot place the model on tp=6: it has 4 KV groups, and 6 neither divides 4 nor is a multiple of it; the nearest legal values are tp=4 and tp=8", many_heads},
      {"tp=3",      "cannot place the model on tp=3: it has 4 KV groups, and 3 neither divides 4 nor is a multiple of it; the nearest legal values are tp=2 and tp=4", many_heads},
      {"tp=7",      "cannot place the model on tp=7: it has 4 KV groups, and 7 neither divides 4 nor is a multiple of it; the nearest legal value is tp=1", seven_heads},
      {"tp=2,pp=8", "cannot deal 7 layers to 8 pipeline stages: a stage would be empty; the nearest legal pp is 7"},
  };
  // clang-format on
  for (const Illegal& row : table) {
    SCOPED_TRACE(row.mesh);
    const std::string message =
        message_of([&] { PlacedModel placing(row.config, row.mesh); }, row.code);
    EXPECT_EQ(message, row.message);
  }
}

TEST(Place, AcceptsEveryLegalTensorParallelism) {
  for (const char* mesh : {"tp=1", "tp=2", "tp=4", "tp=8", "tp=8,cp=3,dp=5,pp=7"}) {
    EXPECT_NO_THROW(PlacedModel(tiny, mesh)) << mesh;
  }
}

TEST(Place, RefusesShapesThatTheConfigDoesNotGive) {
  std::vector<TensorDesc> tensors = tensors_of(tiny);
  tensors[2].extent = Box{{0, 64}, {0, 64}};
  EXPECT_THAT(
      message_of([&] { map_of(tiny).place(tensors, tiny, parse_mesh("tp=2")); }, Errc::corrupt,
                 "RM303"),
      StrEq("cannot place 'model.layers.0.self_attn.k_proj.weight' (bf16, [0, 64) x [0, 64)): "
            "in model 'llama' it is [0, 32) x [0, 64) (kv_heads * head_dim, hidden); does "
            "config.json belong to another model?"));
  tensors[2].extent = Box{{0, 32}};
  EXPECT_THAT(message_of([&] { map_of(tiny).place(tensors, tiny, parse_mesh("tp=2")); },
                         Errc::corrupt, "RM303"),
              testing::HasSubstr("(bf16, [0, 32)): in model 'llama' it is [0, 32) x [0, 64)"));
}

TEST(Place, NamesMissingTensors) {
  std::vector<TensorDesc> tensors = tensors_of(tiny);
  const auto missing = [&] {
    return message_of([&] { map_of(tiny).place(tensors, tiny, Mesh()); }, Errc::incomplete,
                      "RM302");
  };
  std::erase_if(tensors, [](const auto& tensor) { return tensor.name == "model.norm.weight"; });
  EXPECT_THAT(missing(), StrEq("cannot place model 'llama': 1 tensor is absent: "
                               "'model.norm.weight'; is a file of the checkpoint missing?"));
  std::erase_if(tensors,
                [](const auto& tensor) { return tensor.name.starts_with("model.layers.3."); });
  EXPECT_THAT(missing(),
              StrEq("cannot place model 'llama': 10 tensors are absent: "
                    "'model.layers.3.self_attn.q_proj.weight', "
                    "'model.layers.3.self_attn.k_proj.weight', "
                    "'model.layers.3.self_attn.v_proj.weight', ...; is a file of the checkpoint "
                    "missing?"));
  tensors.clear();
  EXPECT_THAT(missing(), testing::HasSubstr("66 tensors are absent"));
}

TEST(Place, NamesTensorsThatNoRuleClaims) {
  std::vector<TensorDesc> tensors = tensors_of(tiny);
  for (const char* name :
       {"model.layers.0.mlp.experts.0.w1.weight", "model.layers.x.mlp.up_proj.weight",
        "model.layers.01.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.weight2"}) {
    tensors.push_back({name, DType::bf16, Box{{0, 1}}});
  }
  EXPECT_THAT(
      message_of([&] { map_of(tiny).place(tensors, tiny, Mesh()); }, Errc::unsupported, "RM310"),
      StrEq("cannot place model 'llama': no rule of its map claims 4 of 70 tensors: "
            "'model.layers.0.mlp.experts.0.w1.weight', 'model.layers.x.mlp.up_proj.weight', "
            "'model.layers.01.mlp.up_proj.weight', ...; give rules that do with `--rules "
            "FILE`"));
}

TEST(Place, RefusesLayersBeyondTheLast) {
  std::vector<TensorDesc> tensors = tensors_of(tiny);
  tensors.push_back({"model.layers.7.input_layernorm.weight", DType::bf16, Box{{0, 64}}});
  EXPECT_THAT(
      message_of([&] { map_of(tiny).place(tensors, tiny, Mesh()); }, Errc::corrupt, "RM303"),
      StrEq("cannot place 'model.layers.7.input_layernorm.weight': model 'llama' has 7 layers, "
            "numbered from 0; does config.json belong to another model?"));
}

struct BadConfig {
  std::string config;
  const char* message;
  Errc code = Errc::corrupt;
};

TEST(Place, SaysWhatIsWrongWithTheConfig) {
  const std::string few = without(tiny, R"("num_attention_heads": 8,)");
  // clang-format off
  const std::vector<BadConfig> table{
      {"",  "cannot use model 'llama': it needs 'num_hidden_layers', but there is no config.json", Errc::incomplete},
      {few, "cannot use model 'llama': it needs 'num_attention_heads', but config.json does not say it", Errc::incomplete},
      {with(few, R"("num_attention_heads": "eight")"), R"(cannot read config.json: 'num_attention_heads' is "eight", but a positive whole number is expected)"},
      {with(few, R"("num_attention_heads": 8.0)"),     "cannot read config.json: 'num_attention_heads' is 8.0, but a positive whole number is expected"},
      {with(few, R"("num_attention_heads": 0)"),       "cannot read config.json: 'num_attention_heads' is 0, but a positive whole number is expected"},
      {with(few, R"("num_attention_heads": 7)"),       "cannot use config.json for model 'llama': 'hidden / heads' is no whole number: 64 / 7"},
      {with(tiny, R"("attention_bias": 1)"),           "cannot read config.json: 'attention_bias' is 1, but true or false is expected"},
      {with(without(tiny, R"("num_hidden_layers": 7, )"), R"("num_hidden_layers": 3000000000)"), "cannot place model 'llama': it cannot have 3000000000 layers"},
      {std::string(tiny.substr(0, 30)),                "cannot read config.json: it is no valid JSON at byte 31"},
  };
  // clang-format on
  const std::vector<TensorDesc> tensors = tensors_of(tiny);
  for (const BadConfig& row : table) {
    SCOPED_TRACE(row.config);
    const std::string message =
        message_of([&] { map_of(tiny).place(tensors, row.config, Mesh()); }, row.code);
    EXPECT_EQ(message, row.message);
  }
}

TEST(NeededTensors, RefusesMoreThanAnyCheckpointHas) {
  const std::string deep =
      with(without(tiny, R"("num_hidden_layers": 7, )"), R"("num_hidden_layers": 2000000000)");
  EXPECT_THAT(
      message_of([&] { map_of(tiny).needed_tensors(deep, DType::bf16); }, Errc::unsupported),
      StrEq("cannot list the tensors of model 'llama': with 2000000000 layers there are more "
            "than 1000000"));
}

TEST(ShippedMap, FitsByModelType) {
  EXPECT_THAT(shipped_map_names(), ElementsAre("llama", "gpt2", "mixtral", "qwen2_moe", "qwen3_moe",
                                               "gpt_oss", "deepseek_v3"));
  for (const char* type : {"llama", "mistral", "qwen2", "qwen3"}) {
    const ModelMap* map = shipped_map(R"({"model_type": ")" + std::string(type) + R"("})");
    ASSERT_NE(map, nullptr) << type;
    EXPECT_EQ(map->name(), "llama");
  }
  EXPECT_EQ(shipped_map(R"({"model_type": "gemma"})"), nullptr);
  EXPECT_EQ(shipped_map("{}"), nullptr);
  EXPECT_EQ(shipped_map(""), nullptr);
  EXPECT_THAT(message_of([] { shipped_map("[]"); }, Errc::corrupt),
              StrEq("cannot read config.json: it is of kind array, but an object is expected"));
}

}  // namespace
}  // namespace remesh
