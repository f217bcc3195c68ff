#pragma once

#include <string_view>

/// @file
/// cli/command/page/: what every HTML report has in it as it is.

namespace remesh {

std::string_view page_style() noexcept;
std::string_view page_script() noexcept;

}  // namespace remesh
