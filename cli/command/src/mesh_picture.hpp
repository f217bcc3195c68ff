#pragma once

#include <string>

#include "remesh/schema/mesh.hpp"

namespace remesh {

/// The ranks of a mesh as an SVG that stands in a page: a grid of the two fastest axes that split
/// anything, and of the next two a grid of such grids. Of axes that are longer than a page is wide
/// the first are drawn and the rest is counted. Cells have their rank's number.
std::string mesh_picture(const Mesh& mesh);

}  // namespace remesh
