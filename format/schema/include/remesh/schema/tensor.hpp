#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "remesh/core/dtype.hpp"
#include "remesh/schema/box.hpp"

namespace remesh {

/// A position in a checkpoint's mesh. A tensor has `ndim`, never a rank; a thread or process of
/// this job is a worker.
using Rank = std::int64_t;

/// One tensor of a checkpoint, whole, whatever the mesh.
struct TensorDesc {
  /// The framework's global name: "model.layers.3.mlp.up_proj.weight". Optimizer state carries the
  /// parameter's name and a state: "...weight@exp_avg".
  std::string name;
  DType dtype = DType::f32;
  Box extent;  ///< all of it, from the origin; a scalar has no dims, an empty tensor has a 0

  friend bool operator==(const TensorDesc&, const TensorDesc&) = default;
};

/// The bytes of all elements, packed. Precondition: they are whole bytes (parsers check it).
std::int64_t num_bytes(const TensorDesc& tensor) noexcept;

/// The bytes of a box's elements, packed.
std::int64_t num_bytes(DType dtype, const Box& box) noexcept;

/// "'model.norm.weight' (bf16, [0, 64))": how errors name a tensor.
std::string to_string(const TensorDesc& tensor);

/// A part of one tensor and the rank that holds it. Replicas are pieces with equal boxes.
struct Piece {
  Rank rank = 0;
  Box box;

  friend bool operator==(const Piece&, const Piece&) = default;
};

}  // namespace remesh
