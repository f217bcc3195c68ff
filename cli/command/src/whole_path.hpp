#pragma once

#include <filesystem>

namespace remesh {

/// Without links, and from the root; the path as it is where the system cannot say.
std::filesystem::path whole_path(const std::filesystem::path& path);

}  // namespace remesh
