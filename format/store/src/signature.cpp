#include "remesh/store/signature.hpp"

#include <algorithm>
#include <array>
#include <sodium.h>
#include <vector>

#include <fmt/format.h>

#include "little_endian.hpp"
#include "minisign_text.hpp"
#include "remesh/core/error.hpp"
#include "sodium_ready.hpp"

namespace remesh {
namespace {

using Bytes = std::span<const std::byte>;
using Signature = std::array<std::byte, crypto_sign_BYTES>;

// What minisign reads, and more than it writes.
constexpr std::int64_t longest_file_bytes = 16384;
constexpr std::string_view trusted_prefix = "trusted comment: ";
constexpr std::string_view prehashed = "ED";
constexpr std::string_view legacy = "Ed";

struct SignatureFile {
  std::string_view algorithm;  ///< prehashed or legacy
  KeyId key;
  Signature over_content;
  std::string_view trusted_comment;
  Signature over_comment;
};
constexpr std::size_t record_bytes = 2 + sizeof(KeyId) + sizeof(Signature);

const unsigned char* raw(Bytes bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

[[noreturn]] void changed(const std::string& what) { throw Error(Errc::unsafe, what, "RM104"); }

// A comment ends up in terminals and logs: nothing in it may steer those.
bool is_plain(std::string_view comment) {
  return std::ranges::all_of(comment, [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return c == '\t' || (code >= 0x20 && code != 0x7F);
  });
}

std::array<std::byte, crypto_generichash_BYTES_MAX> hash_of(Bytes content) {
  std::array<std::byte, crypto_generichash_BYTES_MAX> hash{};
  ::crypto_generichash(reinterpret_cast<unsigned char*>(hash.data()), hash.size(), raw(content),
                       content.size(), nullptr, 0);
  return hash;
}

// What the second signature is over.
std::vector<std::byte> joined(const Signature& signature, std::string_view comment) {
  std::vector<std::byte> bytes(signature.begin(), signature.end());
  bytes.insert(bytes.end(), bytes_of(comment).begin(), bytes_of(comment).end());
  return bytes;
}

Signature signature_of(Bytes message, const SecretKey& key) {
  Signature signature{};
  ::crypto_sign_detached(reinterpret_cast<unsigned char*>(signature.data()), nullptr, raw(message),
                         message.size(), raw(key.bytes()));
  return signature;
}

bool fits(const Signature& signature, Bytes message, const PublicKey& key) {
  return ::crypto_sign_verify_detached(raw(signature), raw(message), message.size(),
                                       raw(key.bytes)) == 0;
}

void parse_record(std::string_view line, SignatureFile& file) {
  std::array<std::byte, record_bytes> record{};
  if (!native::decode_base64(line, record)) {
    changed(fmt::format("the signature is malformed: its line 2 is not base64 of {} bytes",
                        record_bytes));
  }
  const Bytes bytes = record;
  const Bytes algorithm = bytes.first(2);
  if (std::ranges::equal(algorithm, bytes_of(prehashed))) {
    file.algorithm = prehashed;
  } else if (std::ranges::equal(algorithm, bytes_of(legacy))) {
    file.algorithm = legacy;
  } else {
    changed("the signature is malformed: its algorithm is neither 'ED' nor 'Ed'");
  }
  file.key.value = native::load<std::uint64_t>(bytes, 2);
  std::ranges::copy(bytes.last(sizeof(Signature)), file.over_content.begin());
}

// The result refers to `text`.
SignatureFile parse(std::string_view text) {
  const auto lines =
      std::ssize(text) <= longest_file_bytes ? native::lines_of(text, 4) : std::nullopt;
  if (!lines || lines->size() != 4) {
    changed("the signature is malformed: it has not the four lines that minisign writes");
  }
  const auto comment = native::after((*lines)[2], trusted_prefix);
  if (!native::after((*lines)[0], native::untrusted_comment) || !comment) {
    changed(
        "the signature is malformed: its lines 1 and 3 are not an untrusted and a trusted "
        "comment");
  }
  if (!is_plain(*comment)) {
    changed("the signature is malformed: its trusted comment has control characters");
  }
  SignatureFile file{};
  parse_record((*lines)[1], file);
  file.trusted_comment = *comment;
  if (!native::decode_base64((*lines)[3], file.over_comment)) {
    changed(fmt::format("the signature is malformed: its line 4 is not base64 of {} bytes",
                        sizeof(Signature)));
  }
  return file;
}

bool fits_content(const SignatureFile& file, Bytes content, const PublicKey& key) {
  if (file.algorithm == legacy) return fits(file.over_content, content, key);
  return fits(file.over_content, hash_of(content), key);
}

}  // namespace

std::string sign(Bytes content, const SecretKey& key, std::string_view trusted_comment) {
  native::sodium_ready();
  if (std::ssize(trusted_comment) > longest_comment_bytes || !is_plain(trusted_comment)) {
    throw Error(Errc::invalid_argument,
                fmt::format("cannot sign with this trusted comment: it has {} bytes, but it is one "
                            "line of at most {} without control characters",
                            trusted_comment.size(), longest_comment_bytes));
  }
  const Signature over_content = signature_of(hash_of(content), key);
  std::vector<std::byte> record;
  record.reserve(record_bytes);
  record.assign(bytes_of(prehashed).begin(), bytes_of(prehashed).end());
  native::append(record, key.public_key().id.value);
  record.insert(record.end(), over_content.begin(), over_content.end());
  return fmt::format(
      "{}signature by remesh\n{}\n{}{}\n{}\n", native::untrusted_comment,
      native::encode_base64(record), trusted_prefix, trusted_comment,
      native::encode_base64(signature_of(joined(over_content, trusted_comment), key)));
}

std::string check_signature(Bytes content, std::string_view signature, const PublicKey& key) {
  native::sodium_ready();
  const SignatureFile file = parse(signature);
  if (file.key != key.id) {
    throw Error(Errc::unsafe,
                fmt::format("the signature is by key {}, but key {} was to be checked; is it that "
                            "of another author, or an older one?",
                            to_string(file.key), to_string(key.id)),
                "RM612");
  }
  if (!fits_content(file, content, key)) {
    changed(
        fmt::format("the signature by key {} does not fit: the content or the signature was "
                    "changed after it was signed",
                    to_string(key.id)));
  }
  if (!fits(file.over_comment, joined(file.over_content, file.trusted_comment), key)) {
    changed(
        fmt::format("the signature by key {} does not fit its trusted comment, which was "
                    "changed after it was signed",
                    to_string(key.id)));
  }
  return std::string(file.trusted_comment);
}

std::string read_signature(const FileSystem& files, const FileSystem::Path& path) {
  if (files.look(path)) return read_text(files, path, longest_file_bytes);
  throw Error(Errc::unsafe,
              fmt::format("cannot check the signature '{}': there is none; the checkpoint was not "
                          "signed, or the file was removed",
                          path.string()),
              "RM611");
}

}  // namespace remesh
