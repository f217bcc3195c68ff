#pragma once

#include <string_view>

#include "remesh/store/file_system.hpp"

namespace remesh {

/// Which format that no adapter reads `path`, a file or a directory, looks like by names alone;
/// empty where that is not evident. A directory of "iter_*" looks like what lies in the first of
/// them. Throws Error(io).
std::string_view foreign_format(const FileSystem& files, const FileSystem::Path& path,
                                const Entry& entry);

}  // namespace remesh
