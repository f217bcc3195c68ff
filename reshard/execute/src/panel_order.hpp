#pragma once

#include <cstdint>
#include <vector>

#include "panel_copy.hpp"

namespace remesh::detail {

/// An order of the panels, as their numbers, so that workers who take them in turn write to
/// different files: a system lets one thread at a time write to a file. As many files as there are
/// workers are in turn at once, each with its panels in their old order; the one with the most
/// panels comes first. Sets Panel::file and Panel::lane. One worker, or one file, keeps the order.
/// Precondition: fewer than 2^32 panels.
std::vector<std::uint32_t> in_lanes(std::vector<Panel>& panels, const ExtentMap& target,
                                    int workers);

}  // namespace remesh::detail
