#pragma once

#include <memory>
#include <string>

#include "remesh/core/progress.hpp"
#include "remesh/store/file_system.hpp"
#include "remesh/store/signing_key.hpp"

namespace remesh {

/// The key of --sign; null where `path` is empty. The password of an encrypted one comes from the
/// environment variable REMESH_KEY_PASSWORD or, where that is not set, from the terminal, which
/// does not show it. Throws as read_secret_key, and Error(stopped).
std::shared_ptr<const SecretKey> signing_key(const FileSystem& files, const std::string& path,
                                             const StopFlag& stop);

/// What verify --key takes: a file with a public key, or the key itself, 56 characters of base64.
/// Throws Error(invalid_argument) if it is neither.
PublicKey checking_key(const FileSystem& files, const std::string& text);

}  // namespace remesh
