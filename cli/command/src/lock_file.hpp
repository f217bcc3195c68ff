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

/// Reads and parses a lock file. Throws as read_text and parse_fingerprint do.
std::vector<FingerprintLine> read_lock_file(const FileSystem& files, const std::string& path);

/// The lock file that a new one at `path` would replace; nothing where `path` is free. Throws
/// Error(exists) for anything else that lies there, and for a lock file that cannot be read: nobody
/// can tell what would be lost with it.
std::optional<std::vector<FingerprintLine>> replaced_lock_file(const FileSystem& files,
                                                               const std::string& path);

/// Throws Error(exists) where the lock file at `path` and the tensors of `checkpoint`, which is to
/// take its place, have no name in common: it is of another model, and not to be renewed.
void check_same_model(std::span<const FingerprintLine> replaced, const std::string& path,
                      std::span<const TensorDesc> tensors, const std::string& checkpoint);

}  // namespace remesh
