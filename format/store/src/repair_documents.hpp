#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "manifest.hpp"
#include "remesh/store/file_system.hpp"
#include "remesh/store/repair.hpp"

namespace remesh::native {

/// All of a checkpoint but its shards, mended.
struct Documents {
  std::optional<Finding> why_lost;  ///< the manifest is, for this reason: then there are no side
                                    ///< files either
  std::string found_manifest;       ///< what there was, whatever became of it
  std::optional<std::string> found_commit;
  Manifest manifest;
  std::string manifest_text;
  std::string commit_text;
  std::optional<std::string> certificate;
  std::optional<std::string> signature;  ///< carried as it is: only a public key tells more of it
  std::vector<std::string> side;         ///< in catalog order
};

/// Reads and mends them; what was mended, lost and left out goes to the report, but that the
/// manifest is. Throws what the file system throws; Error(unsupported, RM102) for another version.
Documents repair_documents(const FileSystem& files, const FileSystem::Path& root,
                           RepairReport& report);

/// Writes COMMIT for the manifest, and reports it, with `how`, if it is not what was found.
void repair_commit(Documents& documents, RepairReport& report, std::string_view how);

Digest digest_of_text(std::string_view text);

/// The digest of the target's manifest in a certificate.
std::optional<Digest> certified_manifest(std::string_view certificate);

}  // namespace remesh::native
