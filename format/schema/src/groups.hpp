#pragma once

#include <span>

#include "remesh/schema/mesh.hpp"
#include "remesh/schema/placement.hpp"

namespace remesh::detail {

/// Throws Error(invalid_argument) if the mesh cannot divide the groups of some placement: both
/// numbers, and the nearest values that would do for all of them.
void check_groups(std::span<const Placement> placements, const Mesh& mesh);

}  // namespace remesh::detail
