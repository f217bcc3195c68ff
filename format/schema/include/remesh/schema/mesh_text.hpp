#pragma once

#include <string>
#include <string_view>

#include "remesh/schema/mesh.hpp"

namespace remesh {

/// Reads a mesh as users write it: "tp=8,pp=4,dp=16[,cp=1][,ep=8][,etp=1][,vpp=2]
/// [,order=tp-cp-ep-dp-pp]". Axes left out are 1; the order in which they are written means
/// nothing; only `order=` defines the rank order. "same,tp=4" starts from `same` and keeps its
/// order unless order= is given, and its vpp unless pp turns 1.
///
/// The result always has the axes tp, cp, dp, pp, in rank order. Where ep or etp is said, or `same`
/// has it, the experts have a grid of their own over the same ranks, with edp = tp*cp*dp /
/// (etp*ep); otherwise they lie as all else does. An order need not name ep.
///
/// Throws Error(invalid_argument) for text that is no mesh (unknown or repeated key, a size that is
/// no positive integer, an order that does not name each axis once, a format's name such as "hf":
/// "`--mesh` takes a mesh; for a format say `--to hf`"), where etp*ep does not divide tp*cp*dp
/// (with the nearest values of ep that would), and as Mesh does.
Mesh parse_mesh(std::string_view text, const Mesh& same = {});

/// The shortest text that parse_mesh reads back to the same mesh: "tp=2,pp=2".
std::string to_text(const Mesh& mesh);

}  // namespace remesh
