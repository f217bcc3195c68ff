#pragma once

#include <string_view>
#include <vector>

#include "remesh/schema/box.hpp"

namespace remesh::detail {

/// The layers of each stage of a layout string, as StageRule::parse says.
/// Throws Error(invalid_argument), which names the character where reading stopped, if it is none,
/// if E is not the first or L not the last of all, or an m stands before a t.
std::vector<Index> parse_layout_string(std::string_view text);

}  // namespace remesh::detail
