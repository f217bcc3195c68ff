#pragma once

#include <vector>

#include "json_tree.hpp"
#include "remesh/schema/layout.hpp"

namespace remesh::native {

/// A mesh and a layout as the manifest has them; which tensor is placed how stands with the
/// tensors.
Json json_of(const Mesh& mesh);
Json json_of(const Layout& layout);

/// The inverses. Throw Error(corrupt, RM103); Error(out_of_memory, RM605) for more axes, stages or
/// steps than any model has; and what Mesh and Layout throw.
Mesh parse_mesh(const Json& value);
Layout parse_layout(const Json& value, Mesh mesh, std::vector<Placed> placed);

}  // namespace remesh::native
