#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/schema/finding.hpp"
#include "remesh/store/file_system.hpp"

namespace remesh::safetensors {

/// A regular file of a checkpoint directory. In a snapshot of the hub's cache, `path` is the blob
/// to which the directory's link leads.
struct FoundFile {
  std::string name;
  FileSystem::Path path;
  std::int64_t size_bytes = 0;
};

/// What lies at the top level of a directory.
struct Directory {
  std::vector<FoundFile> files;     ///< sorted by name
  std::vector<std::string> others;  ///< names of what is no file, subdirectories with a "/" behind

  const FoundFile* find(std::string_view name) const noexcept;
};

/// Lists a directory. A link is followed only where its target is exactly
/// "../../blobs/<component>", as the hub's cache has it; any other is a finding (RM603), and one
/// that leads nowhere is RM203.
Directory list_directory(const FileSystem& files, const FileSystem::Path& path, Findings& findings);

/// The file of that name in a directory, which may be a link as above; nothing if there is none, or
/// it must not be read (which `findings` are told).
std::optional<FoundFile> find_file(const FileSystem& files, const FileSystem::Path& directory,
                                   const std::string& name, Findings& findings);

}  // namespace remesh::safetensors
