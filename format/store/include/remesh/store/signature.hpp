#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "remesh/store/file_system.hpp"
#include "remesh/store/signing_key.hpp"

/// @file
/// Ed25519 signatures in the form of the program minisign, which can check what is signed here, and
/// the other way round. Four lines:
///
///     untrusted comment: <anybody may change it>
///     <base64 of: algorithm, 2 bytes; key id, 8 bytes; signature, 64 bytes>
///     trusted comment: <text>
///     <base64 of the signature over the signature above and that text>
///
/// Algorithm "ED" signs the BLAKE2b-512 of the content; "Ed", from older versions of minisign, the
/// content itself. So a signature "ED" over a content is, renamed to "Ed", one over the 64 bytes of
/// its hash: what is signed here must never be 64 bytes long. A manifest never is.

namespace remesh {

/// What a trusted comment may have.
inline constexpr std::int64_t longest_comment_bytes = 1024;

/// The text of a signature file, with algorithm "ED". The same arguments give the same text: it has
/// no time and no random part. Throws Error(invalid_argument) for a comment that is too long or has
/// control characters other than a tab.
std::string sign(std::span<const std::byte> content, const SecretKey& key,
                 std::string_view trusted_comment);

/// Returns the trusted comment if `signature`, the text of a signature file, is one over `content`
/// by `key`. Otherwise throws Error(unsafe): RM612, with both key ids, if it names another key, and
/// RM104 if it is malformed, or the content, the signature or the comment was changed. The message
/// names no file.
std::string check_signature(std::span<const std::byte> content, std::string_view signature,
                            const PublicKey& key);

/// The text of a signature file, unchecked. Throws Error(unsafe, RM611) if there is none, and as
/// read_text.
std::string read_signature(const FileSystem& files, const FileSystem::Path& path);

}  // namespace remesh
