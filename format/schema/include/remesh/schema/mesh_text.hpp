#pragma once

#include <string>
#include <string_view>

#include "remesh/schema/mesh.hpp"

namespace remesh {

/// Reads a mesh as users write it: "tp=8,pp=4,dp=16[,cp=1][,order=tp-cp-ep-dp-pp]". Axes left out
/// are 1; the order in which they are written means nothing; only `order=` defines the rank order.
/// "same,tp=4" starts from `same` and keeps its order unless order= is given.
///
/// The result always has the axes tp, cp, dp, pp, in rank order.
/// Throws Error(invalid_argument) for text that is no mesh (unknown or repeated key, a size that is
/// no positive integer, an order that does not name each axis once, a format's name such as "hf":
/// "`--mesh` takes a mesh; for a format say `--to hf`"), and Error(unsupported) for ep, etp or vpp
/// above 1.
Mesh parse_mesh(std::string_view text, const Mesh& same = {});

/// The shortest text that parse_mesh reads back to the same mesh: "tp=2,pp=2".
std::string to_text(const Mesh& mesh);

}  // namespace remesh
