#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lying.hpp"
#include "remesh/core/error.hpp"
#include "remesh/models/model_map.hpp"
#include "remesh/schema/mesh_text.hpp"

/// @file
/// The map format/models/qwen2_moe.toml, against boxes computed by hand; states of optimizers; and
/// numbered experts.

namespace remesh {
namespace {

using ::testing::HasSubstr;

// 5 layers of 8 experts, 12 wide, and a shared one, 28 wide; 4 heads of 6, 2 KV groups.
const std::string config = R"({"model_type": "qwen2_moe", "vocab_size": 515, "hidden_size": 24,
  "num_hidden_layers": 5, "num_experts": 8, "moe_intermediate_size": 12,
  "shared_expert_intermediate_size": 28, "num_attention_heads": 4, "num_key_value_heads": 2})";

const ModelMap& map() {
  const ModelMap* shipped = shipped_map(config);
  EXPECT_NE(shipped, nullptr);
  return *shipped;
}

std::vector<TensorDesc> tensors() { return map().needed_tensors(config, DType::bf16); }

struct Row {
  const char* tensor;
  const char* mesh;
  Rank rank;
  const char* box;  // "-": none of it
};

void expect_boxes(const std::vector<TensorDesc>& all, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    SCOPED_TRACE(std::string(row.tensor) + " on " + row.mesh);
    const Layout layout = map().place(all, config, parse_mesh(row.mesh));
    const auto found = std::ranges::find(all, row.tensor, &TensorDesc::name);
    ASSERT_NE(found, all.end());
    const auto box =
        test::box_on(layout, all, static_cast<std::size_t>(found - all.begin()), row.rank);
    EXPECT_EQ(box ? to_string(*box) : "-", row.box);
  }
}

TEST(Qwen2MoeMap, SplitsEveryExpertOverTensorParallelism) {
  // clang-format off
  expect_boxes(tensors(), {
      {"model.layers.0.mlp.experts.0.gate_proj.weight",   "tp=2", 1, "[6, 12) x [0, 24)"},
      {"model.layers.4.mlp.experts.7.up_proj.weight",     "tp=4", 3, "[9, 12) x [0, 24)"},
      {"model.layers.4.mlp.experts.7.down_proj.weight",   "tp=4", 1, "[0, 24) x [3, 6)"},
      {"model.layers.1.mlp.shared_expert.up_proj.weight", "tp=4", 2, "[14, 21) x [0, 24)"},
      {"model.layers.1.mlp.gate.weight",                  "tp=4", 2, "[0, 8) x [0, 24)"},
      {"model.layers.1.mlp.shared_expert_gate.weight",    "tp=4", 2, "[0, 1) x [0, 24)"},
      {"model.layers.0.self_attn.k_proj.bias",            "tp=4", 1, "[0, 6)"},   // two ranks share a group
      {"model.layers.0.self_attn.k_proj.bias",            "tp=4", 2, "[6, 12)"},
      {"model.layers.2.mlp.experts.3.up_proj.weight",     "pp=2", 0, "[0, 12) x [0, 24)"},  // layers 3 + 2
      {"model.layers.3.mlp.experts.3.up_proj.weight",     "pp=2", 0, "-"},
  });
  // clang-format on
}

TEST(Qwen2MoeMap, StatesLieAsTheirParametersDo) {
  std::vector<TensorDesc> all = tensors();
  const std::string up = "model.layers.3.mlp.experts.2.up_proj.weight";
  all.push_back({up + "@exp_avg", DType::f32, Box{{0, 12}, {0, 24}}});
  all.push_back({up + "@exp_avg_sq_row", DType::f32, Box{{0, 12}}});
  all.push_back({up + "@step", DType::f32, Box{}});
  // clang-format off
  expect_boxes(all, {
      {(up + "@exp_avg").c_str(),        "tp=2,pp=2", 3, "[6, 12) x [0, 24)"},
      {(up + "@exp_avg").c_str(),        "tp=2,pp=2", 0, "-"},
      {(up + "@exp_avg_sq_row").c_str(), "tp=2,pp=2", 3, "[0, 12)"},  // another shape: whole, on its stage
      {(up + "@exp_avg_sq_row").c_str(), "tp=2,pp=2", 0, "-"},
      {(up + "@step").c_str(),           "tp=2,pp=2", 2, "scalar"},
      {(up + "@step").c_str(),           "tp=2,pp=2", 1, "-"},
  });
  // clang-format on
}

TEST(Qwen2MoeMap, OrdersExpertByExpert) {
  const std::vector<TensorDesc> all = tensors();
  EXPECT_EQ(all.size(), 5U * (3 * 2 + 1 + 1 + 8 * 3 + 3 + 1 + 2) + 3);
  std::vector<std::string> first;
  for (const TensorDesc& tensor : all) {
    if (tensor.name.starts_with("model.layers.1.mlp.") && first.size() < 5) {
      first.push_back(tensor.name.substr(19));
    }
  }
  EXPECT_THAT(first, ::testing::ElementsAre(
                         "gate.weight", "experts.0.gate_proj.weight", "experts.0.up_proj.weight",
                         "experts.0.down_proj.weight", "experts.1.gate_proj.weight"));

  std::vector<TensorDesc> mixed = all;
  mixed.insert(mixed.begin(), {all.back().name + "@exp_avg", DType::f32, all.back().extent});
  const std::vector<std::size_t> order = map().state_dict_order(mixed);
  EXPECT_EQ(order.back(), 0U) << "states come behind all parameters";
  EXPECT_EQ(mixed[order.front()].name, "model.embed_tokens.weight");
}

std::string refusal(const std::vector<TensorDesc>& all) {
  try {
    map().place(all, config, parse_mesh("tp=2"));
    return "placed it";
  } catch (const Error& error) {
    return error.id() + ": " + error.what();
  }
}

TEST(Qwen2MoeMap, NamesAbsentExpertsAndOnesTooMany) {
  std::vector<TensorDesc> all = tensors();
  std::erase_if(all, [](const TensorDesc& tensor) {
    return tensor.name == "model.layers.2.mlp.experts.7.up_proj.weight";
  });
  EXPECT_THAT(refusal(all), HasSubstr("RM302: cannot place model 'qwen2_moe': 1 tensor is absent: "
                                      "'model.layers.2.mlp.experts.7.up_proj.weight'"));
  all = tensors();
  all.push_back(
      {"model.layers.2.mlp.experts.8.up_proj.weight", DType::bf16, Box{{0, 12}, {0, 24}}});
  EXPECT_THAT(refusal(all),
              HasSubstr("RM303: cannot place 'model.layers.2.mlp.experts.8.up_proj.weight': model "
                        "'qwen2_moe' has 8 experts, numbered from 0"));
  all = tensors();
  all.push_back({"model.layers.9.none@exp_avg", DType::f32, Box{{0, 12}}});
  EXPECT_THAT(refusal(all), HasSubstr("RM310"));
}

}  // namespace
}  // namespace remesh
