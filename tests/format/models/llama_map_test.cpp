#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lying.hpp"
#include "remesh/models/model_map.hpp"
#include "remesh/schema/mesh_text.hpp"
#include "tiny_llama.hpp"

/// @file
/// The map format/models/llama.toml, against boxes computed by hand.

namespace remesh {
namespace {

using test::expect_held;
using test::map_of;
using test::names_of;
using test::PlacedModel;
using test::tensors_of;
using test::tiny;
using test::with;
using test::without;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

TEST(LlamaMap, SplitsOverTensorParallelism) {
  // clang-format off
  expect_held(tiny, {
      // attention heads: 8 of 8 rows each
      {"tp=1", "model.layers.0.self_attn.q_proj.weight", 0, 0, "[0, 64) x [0, 64)"},
      {"tp=2", "model.layers.0.self_attn.q_proj.weight", 1, 0, "[32, 64) x [0, 64)"},
      {"tp=4", "model.layers.0.self_attn.q_proj.weight", 2, 0, "[32, 48) x [0, 64)"},
      {"tp=8", "model.layers.0.self_attn.q_proj.weight", 5, 0, "[40, 48) x [0, 64)"},
      {"tp=8", "model.layers.0.self_attn.o_proj.weight", 5, 0, "[0, 64) x [40, 48)"},
      {"tp=2", "model.layers.0.self_attn.o_proj.weight", 1, 0, "[0, 64) x [32, 64)"},
      // KV groups: 4 of 8 rows each; with tp 8, two ranks share one
      {"tp=1", "model.layers.0.self_attn.k_proj.weight", 0, 0, "[0, 32) x [0, 64)"},
      {"tp=2", "model.layers.0.self_attn.k_proj.weight", 1, 0, "[16, 32) x [0, 64)"},
      {"tp=4", "model.layers.0.self_attn.v_proj.weight", 3, 0, "[24, 32) x [0, 64)"},
      {"tp=8", "model.layers.0.self_attn.v_proj.weight", 4, 0, "[16, 24) x [0, 64)"},
      {"tp=8", "model.layers.0.self_attn.v_proj.weight", 5, 0, "[16, 24) x [0, 64)"},
      {"tp=8", "model.layers.0.self_attn.k_proj.weight", 7, 0, "[24, 32) x [0, 64)"},
      // 108 over 8: 14, 14, 14, 14, 13, 13, 13, 13
      {"tp=4", "model.layers.0.mlp.gate_proj.weight",    3, 0, "[81, 108) x [0, 64)"},
      {"tp=8", "model.layers.0.mlp.gate_proj.weight",    3, 0, "[42, 56) x [0, 64)"},
      {"tp=8", "model.layers.0.mlp.up_proj.weight",      4, 0, "[56, 69) x [0, 64)"},
      {"tp=8", "model.layers.0.mlp.down_proj.weight",    7, 0, "[0, 64) x [95, 108)"},
      // 515 over 4: 129, 129, 129, 128; over 8: 65, 65, 65, 64, ...
      {"tp=2", "model.embed_tokens.weight",              1, 0, "[258, 515) x [0, 64)"},
      {"tp=4", "model.embed_tokens.weight",              3, 0, "[387, 515) x [0, 64)"},
      {"tp=8", "lm_head.weight",                         2, 0, "[130, 195) x [0, 64)"},
      {"tp=8", "lm_head.weight",                         3, 0, "[195, 259) x [0, 64)"},
      // all of it everywhere
      {"tp=8", "model.layers.0.input_layernorm.weight",  5, 0, "[0, 64)"},
      {"tp=8", "model.layers.6.post_attention_layernorm.weight", 5, 0, "[0, 64)"},
      {"tp=8", "model.norm.weight",                      7, 0, "[0, 64)"},
  });
  // clang-format on
}

TEST(LlamaMap, DealsSevenLayersToThreeStagesAsThreeTwoTwo) {
  const PlacedModel placing(tiny, "tp=2,pp=3");
  EXPECT_THAT(placing.layout().stages().layers, ElementsAre(3, 2, 2));
  // clang-format off
  expect_held(tiny, {
      {"tp=2,pp=3", "model.layers.2.mlp.up_proj.weight", 0, 0, "[0, 54) x [0, 64)"},
      {"tp=2,pp=3", "model.layers.2.mlp.up_proj.weight", 0, 1, "-"},
      {"tp=2,pp=3", "model.layers.3.mlp.up_proj.weight", 0, 0, "-"},
      {"tp=2,pp=3", "model.layers.3.mlp.up_proj.weight", 1, 1, "[54, 108) x [0, 64)"},
      {"tp=2,pp=3", "model.layers.4.input_layernorm.weight", 1, 1, "[0, 64)"},
      {"tp=2,pp=3", "model.layers.5.input_layernorm.weight", 1, 1, "-"},
      {"tp=2,pp=3", "model.layers.5.input_layernorm.weight", 1, 2, "[0, 64)"},
      {"tp=2,pp=3", "model.layers.6.self_attn.q_proj.weight", 0, 2, "[0, 32) x [0, 64)"},
      {"tp=2,pp=3", "model.embed_tokens.weight", 0, 0, "[0, 258) x [0, 64)"},
      {"tp=2,pp=3", "model.embed_tokens.weight", 0, 1, "-"},
      {"tp=2,pp=3", "model.embed_tokens.weight", 0, 2, "-"},
      {"tp=2,pp=3", "model.norm.weight",         1, 0, "-"},
      {"tp=2,pp=3", "model.norm.weight",         1, 2, "[0, 64)"},
      {"tp=2,pp=3", "lm_head.weight",            1, 2, "[258, 515) x [0, 64)"},
      {"tp=2,pp=3", "lm_head.weight",            1, 0, "-"},
  });
  // clang-format on
}

TEST(LlamaMap, TiedEmbeddingsSitOnTheFirstAndTheLastStage) {
  const std::string tied =
      with(without(tiny, R"(, "tie_word_embeddings": false)"), R"("tie_word_embeddings": true)");
  EXPECT_THAT(names_of(tensors_of(tied)), testing::Not(testing::Contains("lm_head.weight")));
  // clang-format off
  expect_held(tied, {
      {"tp=2,pp=3", "model.embed_tokens.weight", 1, 0, "[258, 515) x [0, 64)"},
      {"tp=2,pp=3", "model.embed_tokens.weight", 1, 1, "-"},
      {"tp=2,pp=3", "model.embed_tokens.weight", 1, 2, "[258, 515) x [0, 64)"},
      {"tp=2",      "model.embed_tokens.weight", 0, 0, "[0, 258) x [0, 64)"},
  });
  // clang-format on
}

TEST(LlamaMap, AcceptsAHeadBesideTiedEmbeddings) {
  const std::string tied =
      with(without(tiny, R"(, "tie_word_embeddings": false)"), R"("tie_word_embeddings": true)");
  const std::vector<TensorDesc> tensors = tensors_of(tiny);
  const Layout layout = map_of(tied).place(tensors, tied, parse_mesh("pp=2"));
  EXPECT_EQ(test::box_on(layout, tensors, tensors.size() - 1, 0), std::nullopt);
  EXPECT_EQ(test::box_on(layout, tensors, tensors.size() - 1, 1), tensors.back().extent);
}

TEST(LlamaMap, SplitsTheBiasesOfQwen2AsTheirWeights) {
  const std::string qwen2 =
      with(without(tiny, R"("model_type": "llama", )"), R"("model_type": "qwen2")");
  // clang-format off
  expect_held(qwen2, {
      {"tp=4", "model.layers.0.self_attn.q_proj.bias", 2, 0, "[32, 48)"},
      {"tp=8", "model.layers.0.self_attn.k_proj.bias", 3, 0, "[8, 16)"},
      {"tp=2", "model.layers.0.self_attn.v_proj.bias", 1, 0, "[16, 32)"},
      {"tp=2", "model.layers.0.self_attn.o_proj.bias", 1, 0, "no such tensor"},
  });
  // clang-format on
}

TEST(LlamaMap, GivesEveryRankTheBiasesThatAreAddedOnce) {
  const std::string biased = with(tiny, R"("attention_bias": true, "mlp_bias": true)");
  // clang-format off
  expect_held(biased, {
      {"tp=4", "model.layers.0.self_attn.o_proj.bias", 2, 0, "[0, 64)"},
      {"tp=4", "model.layers.0.mlp.down_proj.bias",    3, 0, "[0, 64)"},
      {"tp=4", "model.layers.0.mlp.gate_proj.bias",    3, 0, "[81, 108)"},
      {"tp=8", "model.layers.0.mlp.up_proj.bias",      4, 0, "[56, 69)"},
  });
  // clang-format on
}

TEST(LlamaMap, GivesEveryRankTheHeadNormsOfQwen3) {
  const std::string qwen3 =
      with(without(tiny, R"("model_type": "llama", )"), R"("model_type": "qwen3", "head_dim": 16)");
  // clang-format off
  expect_held(qwen3, {
      {"tp=4", "model.layers.0.self_attn.q_norm.weight", 3, 0, "[0, 16)"},
      {"tp=4", "model.layers.0.self_attn.k_norm.weight", 0, 0, "[0, 16)"},
      {"tp=4", "model.layers.0.self_attn.q_proj.weight", 3, 0, "[96, 128) x [0, 64)"},
      {"tp=4", "model.layers.0.self_attn.o_proj.weight", 3, 0, "[0, 64) x [96, 128)"},
  });
  // clang-format on
}

TEST(LlamaMap, TakesRotaryConstantsOfOldCheckpoints) {
  std::vector<TensorDesc> tensors = tensors_of(tiny);
  tensors.push_back({"model.layers.6.self_attn.rotary_emb.inv_freq", DType::f32, Box{{0, 4}}});
  const Layout layout = map_of(tiny).place(tensors, tiny, parse_mesh("tp=2,pp=2"));
  EXPECT_EQ(test::box_on(layout, tensors, tensors.size() - 1, 0), std::nullopt);
  EXPECT_EQ(test::box_on(layout, tensors, tensors.size() - 1, 3), tensors.back().extent);
}

TEST(LlamaMap, DefaultsAreThoseOfTransformers) {
  const std::string mha = without(tiny, R"("num_key_value_heads": 4, )");
  EXPECT_EQ(PlacedModel(mha, "tp=8").held("model.layers.0.self_attn.k_proj.weight", 7, 0),
            "[56, 64) x [0, 64)");
  EXPECT_EQ(tensors_of(with(mha, R"("num_key_value_heads": null)")), tensors_of(mha));
}

// The names as transformers 5.24 lists them, of one layer; {} is its number.
std::vector<std::string> state_dict(std::vector<std::string> layer) {
  std::vector<std::string> names{"model.embed_tokens.weight"};
  for (const char* number : {"0", "1", "2", "3", "4", "5", "6"}) {
    for (const std::string& name : layer)
      names.push_back("model.layers." + (number + ("." + name)));
  }
  names.insert(names.end(), {"model.norm.weight", "lm_head.weight"});
  return names;
}

TEST(LlamaMap, NeedsExactlyTheStateDictOfTransformers) {
  const std::string untyped = without(tiny, R"("model_type": "llama", )");
  EXPECT_THAT(
      names_of(tensors_of(tiny)),
      ElementsAreArray(state_dict(
          {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight",
           "self_attn.o_proj.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight",
           "mlp.down_proj.weight", "input_layernorm.weight", "post_attention_layernorm.weight"})));
  EXPECT_THAT(
      names_of(tensors_of(with(tiny, R"("attention_bias": true, "mlp_bias": true)"))),
      ElementsAreArray(state_dict(
          {"self_attn.q_proj.weight", "self_attn.q_proj.bias", "self_attn.k_proj.weight",
           "self_attn.k_proj.bias", "self_attn.v_proj.weight", "self_attn.v_proj.bias",
           "self_attn.o_proj.weight", "self_attn.o_proj.bias", "mlp.gate_proj.weight",
           "mlp.gate_proj.bias", "mlp.up_proj.weight", "mlp.up_proj.bias", "mlp.down_proj.weight",
           "mlp.down_proj.bias", "input_layernorm.weight", "post_attention_layernorm.weight"})));
  const std::string all_biases = R"("attention_bias": true, "mlp_bias": true, "model_type": )";
  EXPECT_EQ(tensors_of(with(untyped, all_biases + R"("mistral")")), tensors_of(tiny));
  EXPECT_THAT(
      names_of(tensors_of(with(untyped, all_biases + R"("qwen2")"))),
      ElementsAreArray(state_dict(
          {"self_attn.q_proj.weight", "self_attn.q_proj.bias", "self_attn.k_proj.weight",
           "self_attn.k_proj.bias", "self_attn.v_proj.weight", "self_attn.v_proj.bias",
           "self_attn.o_proj.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight",
           "mlp.down_proj.weight", "input_layernorm.weight", "post_attention_layernorm.weight"})));
  EXPECT_THAT(
      names_of(tensors_of(with(untyped, all_biases + R"("qwen3")"))),
      ElementsAreArray(state_dict(
          {"self_attn.q_proj.weight", "self_attn.q_proj.bias", "self_attn.k_proj.weight",
           "self_attn.k_proj.bias", "self_attn.v_proj.weight", "self_attn.v_proj.bias",
           "self_attn.o_proj.weight", "self_attn.o_proj.bias", "self_attn.q_norm.weight",
           "self_attn.k_norm.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight",
           "mlp.down_proj.weight", "input_layernorm.weight", "post_attention_layernorm.weight"})));
}

}  // namespace
}  // namespace remesh
