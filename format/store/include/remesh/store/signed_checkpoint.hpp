#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "remesh/core/progress.hpp"
#include "remesh/core/thread_pool.hpp"
#include "remesh/schema/finding.hpp"
#include "remesh/store/file_system.hpp"
#include "remesh/store/signing_key.hpp"

/// @file
/// Whether a native checkpoint is what the owner of a key signed. The signature is over the
/// manifest, and the manifest has the tree hashes of all other files (file_tree.hpp).

namespace remesh {

/// How much of a signed checkpoint is read.
enum class SignedPart {
  manifest,  ///< files may be anything
  all,
};

struct SignedCheck {
  /// RM611 if there is no signature, or the manifest has no tree hashes to go with it; RM612 if it
  /// is by another key; RM104 for one that does not fit, and for each file that is not what was
  /// signed. None: the checkpoint is what was signed, as far as it was read.
  std::vector<Finding> findings;
  std::string what;  ///< that lists the files, and is signed: "manifest", "seal"
  bool manifest_fits = false;
  std::string trusted_comment;     ///< where the manifest fits
  std::int64_t files = 0;          ///< how many the manifest lists, likewise
  std::int64_t files_checked = 0;  ///< how many of them were read, and are what was signed
};

/// Checks the checkpoint `directory`, which nobody changes meanwhile. Not a byte of the manifest is
/// parsed before its signature fits. COMMIT, the certificate, and files that the manifest does not
/// list are not signed, and not looked at.
/// Throws Error(io), Error(stopped), Error(out_of_memory) for a manifest that is too large.
SignedCheck check_signed(const FileSystem& files, const FileSystem::Path& directory,
                         const PublicKey& key, SignedPart part, ThreadPool& pool,
                         Progress& progress, const StopFlag& stop);

}  // namespace remesh
