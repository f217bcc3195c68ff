#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "remesh/schema/tensor.hpp"

/// @file
/// Which layer of a model a tensor belongs to, by its name alone: reports show numbers layer by
/// layer, of whatever model.

namespace remesh {

/// Where tensors of no layer are counted: embeddings, the output.
inline constexpr std::int64_t no_layer = -1;

/// "model.layers.3.mlp.up_proj.weight" is layer 3, kind "model.layers.*.mlp.up_proj.weight".
struct LayerName {
  std::int64_t layer = no_layer;
  std::string kind;  ///< the name, with a star for each number

  friend bool operator==(const LayerName&, const LayerName&) = default;
};

/// The layer is the first part between dots that is a number, unless an expert's.
LayerName layer_of(std::string_view name);

/// Bytes of each layer.
std::map<std::int64_t, std::int64_t> bytes_by_layer(std::span<const TensorDesc> tensors);

}  // namespace remesh
