#include "followed.hpp"

#include <filesystem>
#include <system_error>

namespace remesh {

FileSystem::Path followed(const FileSystem& files, const FileSystem::Path& path) {
  const auto entry = files.look(path);
  if (!entry || entry->kind != EntryKind::link) return path;
  std::error_code failed;
  FileSystem::Path target = std::filesystem::canonical(path, failed);
  return failed ? path : target;
}

}  // namespace remesh
