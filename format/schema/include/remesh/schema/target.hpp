#pragma once

#include <optional>
#include <utility>

#include "remesh/schema/sharding.hpp"
#include "remesh/schema/stages.hpp"

namespace remesh {

/// How a checkpoint is to lie: what `--mesh`, `--stages`, `--zero` and `--shard-rule` say together.
struct Target {
  Target() = default;
  Target(Mesh on)
      : mesh(std::move(on)) {}  // NOLINT(google-explicit-constructor): a mesh alone is one

  Mesh mesh;
  std::optional<StageRule> stages;   ///< left out: as they are, or evenly
  std::optional<Sharding> sharding;  ///< left out: as it is
};

}  // namespace remesh
