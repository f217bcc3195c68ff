#pragma once

#include <optional>
#include <string>
#include <vector>

#include "manifest.hpp"
#include "remesh/store/file_system.hpp"
#include "remesh/store/repair.hpp"

namespace remesh::native {

/// All of a checkpoint but its shards, mended.
struct Documents {
  Manifest manifest;
  std::string manifest_text;
  std::string commit_text;
  std::optional<std::string> certificate;
  std::optional<std::string> signature;  ///< carried as it is: only a public key tells more of it
  std::vector<std::string> side;         ///< in catalog order
};

/// Reads and mends them; what was mended, lost and left out goes to the report. Nothing if the
/// manifest is lost, without which nothing else can be told. Throws what the file system throws;
/// Error(unsupported, RM102) for another version.
std::optional<Documents> repair_documents(const FileSystem& files, const FileSystem::Path& root,
                                          RepairReport& report);

}  // namespace remesh::native
