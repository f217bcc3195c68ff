#pragma once

#include <string>
#include <string_view>

#include "job_options.hpp"
#include "remesh/schema/target.hpp"
#include "remesh/store/file_system.hpp"

namespace remesh {

/// Refuses early what `--mesh` cannot mean, before a checkpoint is opened.
/// Throws Error(invalid_argument) for a format ("`--mesh` takes a mesh; for a format say `--to
/// hf`").
void check_mesh_text(const std::string& text);

/// How the checkpoint that is written is to lie. `--mesh`: "tp=4", "same,tp=4" (the source's, but),
/// "like:OTHER" (that checkpoint's), "@FILE" (see parse_mesh_file; `--stages`, `--zero` and
/// `--shard-rule` win over what the file says); empty: one rank for hf, the source's otherwise.
/// Throws as parse_mesh, StageRule::parse, parse_mesh_file and open_reader do, and
/// Error(invalid_argument) for a `--shard-rule` of nothing that is divided, and for stages and
/// shards of a format that has no mesh.
Target target_of(const JobOptions& options, std::string_view to, const Mesh& source,
                 const FileSystem& files);

}  // namespace remesh
