#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "remesh/schema/layout.hpp"
#include "remesh/schema/tensor.hpp"

namespace remesh {

/// How what data-parallel ranks would all hold is divided among them.
enum class ShardRule : std::uint8_t {
  chunk = 1,  ///< each tensor along dim 0, as torch.chunk does: FSDP2
  flat = 2,   ///< as ranges of a line of elements: DeepSpeed's ZeRO
};

/// Which tensors are divided over the data-parallel ranks, by ZeRO's stages.
struct Sharding {
  /// 0: none; 1: states of optimizers; 2: the same at rest, since no checkpoint has gradients;
  /// 3: parameters too.
  int zero = 0;
  /// Left out: flat for 1 and 2, chunk for 3, as the usual frameworks do.
  std::optional<ShardRule> rule;
  /// With ShardRule::flat, what the lines are like; `over` and `name` do not matter. Left out: one
  /// line for each kind of state, padded as DeepSpeed pads them; with zero 3 each tensor by itself.
  std::optional<Flat> line;
};

/// The same layout with the data-parallel ranks (dp and cp as one index in the mesh's order, for
/// tensors of experts edp) dividing what `sharding` says, after all other splits, and all else
/// whole on each of them, whatever the layout said before. Scalars stay whole; what has scales is
/// chunked between its blocks. Throws Error(unsupported) where such a tensor is to lie on a line.
Layout sharded(const Layout& layout, std::span<const TensorDesc> tensors, const Sharding& sharding);

}  // namespace remesh
