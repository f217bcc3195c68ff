#pragma once

#include <string>
#include <string_view>

#include "remesh/store/file_system.hpp"

namespace remesh {

/// A line of a file as the system knows it: its size, when it was last changed, its inode.
std::string identity_line(const FileSystem& files, std::string_view name,
                          const FileSystem::Path& path);

/// Throws Error(unsafe), which quotes both, at the first line that differs: a file that is written
/// while it is read is neither what it was nor what it will be. `undone` is what was not done
/// because of it: "nothing was published".
void check_unchanged(const std::string& before, const std::string& after, std::string_view undone);

}  // namespace remesh
