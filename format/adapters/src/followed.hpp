#pragma once

#include "remesh/store/file_system.hpp"

namespace remesh {

/// The path that the user meant: a link that the user names is followed, unlike one that lies
/// within a checkpoint. The path itself where it is no link, or leads nowhere.
FileSystem::Path followed(const FileSystem& files, const FileSystem::Path& path);

}  // namespace remesh
