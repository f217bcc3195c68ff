#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "lying.hpp"
#include "remesh/core/error.hpp"
#include "remesh/models/model_map.hpp"
#include "remesh/schema/mesh_text.hpp"

namespace remesh::test {

// 7 layers, 8 heads of 8 over 4 KV groups; 515 and 108 divide by little.
inline constexpr std::string_view tiny =
    R"({"model_type": "llama", "vocab_size": 515, "hidden_size": 64,
    "intermediate_size": 108, "num_hidden_layers": 7, "num_attention_heads": 8,
    "num_key_value_heads": 4, "tie_word_embeddings": false})";

inline std::string with(std::string_view config, std::string_view more) {
  return std::string(config.substr(0, config.rfind('}'))) + ", " + std::string(more) + "}";
}

inline std::string without(std::string_view config, const std::string& entry) {
  std::string text(config);
  text.erase(text.find(entry), entry.size());
  return text;
}

inline const ModelMap& map_of(std::string_view config) {
  const ModelMap* map = shipped_map(config);
  if (map == nullptr) throw Error(Errc::internal, "no map ships for this test's config");
  return *map;
}

inline std::vector<TensorDesc> tensors_of(std::string_view config) {
  return map_of(config).needed_tensors(config, DType::bf16);
}

inline std::vector<std::string> names_of(std::span<const TensorDesc> tensors) {
  std::vector<std::string> names;
  for (const TensorDesc& tensor : tensors) names.push_back(tensor.name);
  return names;
}

inline std::string message_of(const std::function<void()>& action, Errc code,
                              std::string_view id = {}) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_EQ(error.id(), id);
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

// A checkpoint on a mesh, to be asked who holds what.
class PlacedModel {
 public:
  PlacedModel(std::string_view config, std::string_view mesh)
      : tensors_(tensors_of(config)),
        layout_(map_of(config).place(tensors_, config, parse_mesh(mesh))) {}

  // What rank (tp, pp) holds of a tensor, or "-".
  std::string held(std::string_view name, Rank tp, Rank pp) const {
    const auto found = std::ranges::find(tensors_, name, &TensorDesc::name);
    if (found == tensors_.end()) return "no such tensor";
    const auto number = static_cast<std::size_t>(found - tensors_.begin());
    const auto box = box_on(layout_, tensors_, number, tp + layout_.mesh().size("tp") * pp);
    return box ? to_string(*box) : "-";
  }

  const Layout& layout() const { return layout_; }
  const std::vector<TensorDesc>& tensors() const { return tensors_; }

 private:
  std::vector<TensorDesc> tensors_;
  Layout layout_;
};

struct Held {
  const char* mesh;
  const char* tensor;
  Rank tp;
  Rank pp;
  const char* box;
};

inline void expect_held(std::string_view config, const std::vector<Held>& table) {
  for (const Held& row : table) {
    SCOPED_TRACE(std::string(row.mesh) + " " + row.tensor + " tp " + std::to_string(row.tp) +
                 " pp " + std::to_string(row.pp));
    EXPECT_EQ(PlacedModel(config, row.mesh).held(row.tensor, row.tp, row.pp), row.box);
  }
}

}  // namespace remesh::test
