#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "remesh/schema/sharding.hpp"
#include "remesh/schema/stages.hpp"

namespace remesh {

/// What `--mesh @FILE` names: a layout as it was written.
struct MeshFile {
  std::string mesh;                  ///< as `--mesh` has it: "tp=2,pp=2", "same,tp=4"
  std::optional<StageRule> stages;   ///< "even" or [7, 8, 8, 7], ...
  std::optional<Sharding> sharding;  ///< zero, shard_rule, [line]
};

/// Reads TOML; cli/README.md describes it. `where` names the text in errors.
/// Throws Error(invalid_argument) with line and column for a text that is no TOML, an unknown key
/// (with the one that was meant), a value of another kind, and what parse_mesh and StageRule::parse
/// refuse.
MeshFile parse_mesh_file(std::string_view toml, std::string_view where);

}  // namespace remesh
