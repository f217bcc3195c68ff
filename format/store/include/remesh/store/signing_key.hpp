#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "remesh/store/file_system.hpp"
#include "remesh/store/secret.hpp"

/// @file
/// Keys in the form of the program minisign: `minisign -G` makes a pair of files. Both hold a line
/// of comment that means nothing, then one of base64.

namespace remesh {

/// Names a pair of keys. Not secret, and no proof of anything: anybody can write it into a file.
struct KeyId {
  std::uint64_t value = 0;

  friend bool operator==(const KeyId&, const KeyId&) = default;
};

/// 16 upper-case hexadecimal digits, as minisign prints it.
std::string to_string(KeyId id);

/// An Ed25519 key that signatures are checked with.
struct PublicKey {
  KeyId id;
  std::array<std::byte, 32> bytes{};

  friend bool operator==(const PublicKey&, const PublicKey&) = default;
};

/// The line of base64 that stands for it.
std::string to_string(const PublicKey& key);

/// Reads that line, or the content of a minisign .pub file. Throws Error(invalid_argument) for
/// anything else; the message does not quote the text, which may be a secret key by mistake.
PublicKey parse_public_key(std::string_view text);

/// The other half of the pair.
class SecretKey {
 public:
  /// `seed_and_public_key`: 64 bytes, the 32 of the seed and the 32 that belong to it. Throws
  /// Error(invalid_argument) if they do not: signatures by such a key would give the seed away.
  SecretKey(KeyId id, Secret seed_and_public_key);

  const PublicKey& public_key() const noexcept { return public_key_; }
  /// Those 64 bytes.
  std::span<const std::byte> bytes() const noexcept { return bytes_.bytes(); }

 private:
  Secret bytes_;
  PublicKey public_key_;
};

/// Asked at most once, and only if a key is encrypted.
using AskPassword = std::function<Secret()>;

/// Reads the content of a minisign key file, encrypted or not (`minisign -G -W`). Throws
/// Error(invalid_argument) if it is none, if it is encrypted and there is nobody to ask, if the
/// password is wrong, or if undoing the encryption would cost more than for any key that minisign
/// makes: 1 GiB of memory and some seconds. Throws Error(out_of_memory) if the machine has less.
SecretKey parse_secret_key(std::string_view text, const AskPassword& ask);

/// Reads the file; no copy of its content remains in memory. Throws as parse_secret_key, with the
/// path, and as FileSystem::open.
SecretKey read_secret_key(const FileSystem& files, const FileSystem::Path& path,
                          const AskPassword& ask);

}  // namespace remesh
