#pragma once

#include <string>
#include <string_view>

#include "remesh/schema/mesh.hpp"
#include "remesh/store/file_system.hpp"

namespace remesh {

/// Refuses early what `--mesh` cannot mean, before a checkpoint is opened.
/// Throws Error(invalid_argument) for a format ("`--mesh` takes a mesh; for a format say `--to
/// hf`"), Error(unsupported) for a file of meshes ("@mesh.toml").
void check_mesh_text(const std::string& text);

/// The mesh that `--mesh` asks for: "tp=4", "same,tp=4" (the source's, but), "like:OTHER" (that
/// checkpoint's). Empty: one rank for hf, the source's otherwise.
/// Throws as parse_mesh and open_reader do.
Mesh target_mesh(const std::string& text, std::string_view to, const Mesh& source,
                 const FileSystem& files);

}  // namespace remesh
