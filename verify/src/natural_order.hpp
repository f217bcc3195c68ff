#pragma once

#include <string_view>

namespace remesh::detail {

/// Whether one name comes before another where runs of digits count as numbers: "layers.2" before
/// "layers.10". A total order of different names: where numbers are equal, bytes decide.
bool comes_before(std::string_view a, std::string_view b) noexcept;

}  // namespace remesh::detail
