#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "remesh/schema/tensor.hpp"
#include "remesh/store/file_system.hpp"
#include "remesh/verify/fingerprint.hpp"

/// @file
/// Lock files of fingerprints, as files.

namespace remesh {

/// Reads and parses a lock file. Throws as read_text and parse_fingerprint do. Of a file that does
/// not begin as one no more is read.
std::vector<FingerprintLine> read_lock_file(const FileSystem& files, const std::string& path);

/// The lock file that a new one at `path` would replace; nothing where `path` is free. Throws
/// Error(exists) for anything else that lies there, and for a lock file that cannot be read: nobody
/// can tell what would be lost with it.
std::optional<std::vector<FingerprintLine>> replaced_lock_file(const FileSystem& files,
                                                               const std::string& path);

/// Throws Error(exists) where `checkpoint`, of which a new lock file is to take the place of the
/// one at `path`, has fewer than half of its tensors, by name and shape: it is of another model,
/// and not to be renewed.
void check_same_model(std::span<const FingerprintLine> replaced, const std::string& path,
                      std::span<const TensorDesc> tensors, const std::string& checkpoint);

}  // namespace remesh
