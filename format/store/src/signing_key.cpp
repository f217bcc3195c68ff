#include "remesh/store/signing_key.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <sodium.h>
#include <utility>

#include <fmt/format.h>

#include "little_endian.hpp"
#include "minisign_text.hpp"
#include "remesh/core/error.hpp"
#include "sodium_ready.hpp"

namespace remesh {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::int64_t longest_file_bytes = 4096;
constexpr std::size_t key_bytes = crypto_sign_SECRETKEYBYTES;
constexpr std::size_t check_bytes = 32;

// A public key: "Ed", key id, key.
constexpr std::size_t public_bytes = 2 + sizeof(KeyId) + sizeof(PublicKey::bytes);

// A secret key: three algorithms, salt, cost in operations and in memory, and what is encrypted:
// key id, key, BLAKE2b-256 of "Ed", key id and key.
namespace field {
constexpr std::size_t signing = 0;
constexpr std::size_t encryption = 2;
constexpr std::size_t checksum = 4;
constexpr std::size_t salt = 6;
constexpr std::size_t operations = 38;
constexpr std::size_t memory = 46;
constexpr std::size_t hidden = 54;
}  // namespace field
constexpr std::size_t hidden_bytes = sizeof(KeyId) + key_bytes + check_bytes;
constexpr std::size_t secret_bytes = field::hidden + hidden_bytes;

const unsigned char* raw(Bytes bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* writable(std::span<std::byte> bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

bool equals(Bytes bytes, std::string_view text) {
  return std::ranges::equal(bytes, std::as_bytes(std::span(text)));
}

[[noreturn]] void refuse(const std::string& what) { throw Error(Errc::invalid_argument, what); }

// The line of base64: alone, or after one of comment.
std::string_view payload_line(std::string_view text, const char* what) {
  const auto lines = text.size() <= longest_file_bytes ? native::lines_of(text, 2) : std::nullopt;
  const bool commented =
      lines && lines->size() == 2 && native::after(lines->front(), native::untrusted_comment);
  if (!commented && (!lines || lines->size() != 1)) {
    refuse(
        fmt::format("it is no {} key as minisign writes it: those have a line of base64, and at "
                    "most a line 'untrusted comment: ...' before it",
                    what));
  }
  return lines->back();
}

// BLAKE2b-256 of "Ed", key id and key.
std::array<std::byte, check_bytes> checksum_of(Bytes hidden) {
  constexpr std::string_view algorithm = "Ed";
  ::crypto_generichash_state state;
  ::crypto_generichash_init(&state, nullptr, 0, check_bytes);
  ::crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(algorithm.data()),
                              algorithm.size());
  ::crypto_generichash_update(&state, raw(hidden), sizeof(KeyId) + key_bytes);
  std::array<std::byte, check_bytes> sum{};
  ::crypto_generichash_final(&state, writable(sum), sum.size());
  ::sodium_memzero(&state, sizeof state);
  return sum;
}

bool checksum_fits(Bytes hidden) {
  const auto sum = checksum_of(hidden);
  return ::sodium_memcmp(sum.data(), hidden.last(check_bytes).data(), check_bytes) == 0;
}

// A file that somebody sent must not make this program work for ever: minisign's own keys need as
// much as this and never more.
void check_cost(std::uint64_t operations, std::uint64_t memory) {
  constexpr std::uint64_t most_operations = crypto_pwhash_scryptsalsa208sha256_OPSLIMIT_SENSITIVE;
  constexpr std::uint64_t most_memory = crypto_pwhash_scryptsalsa208sha256_MEMLIMIT_SENSITIVE;
  if (operations <= most_operations && memory <= most_memory) return;
  refuse(
      fmt::format("its password would cost {} operations and {} bytes of memory to check, but "
                  "keys that minisign makes need at most {} and {}",
                  operations, memory, most_operations, most_memory));
}

// Undoes the encryption in place.
void decrypt(std::span<std::byte> file, const AskPassword& ask) {
  const auto operations = native::load<std::uint64_t>(file, field::operations);
  const auto memory = native::load<std::uint64_t>(file, field::memory);
  check_cost(operations, memory);
  if (!ask) refuse("it is encrypted with a password, and none was given");
  const Secret password = ask();

  Secret stream(hidden_bytes);
  if (::crypto_pwhash_scryptsalsa208sha256(writable(stream.bytes()), hidden_bytes,
                                           reinterpret_cast<const char*>(raw(password.bytes())),
                                           password.bytes().size(), raw(file.subspan(field::salt)),
                                           operations, memory) != 0) {
    throw Error(Errc::out_of_memory,
                fmt::format("there is not enough memory to check its password: {} bytes", memory));
  }
  const std::span<std::byte> hidden = file.subspan(field::hidden);
  std::ranges::transform(hidden, stream.bytes(), hidden.begin(), std::bit_xor<>());
  if (!checksum_fits(hidden)) refuse("the password is wrong, or the key was damaged");
}

// `minisign -G -W` leaves the checksum zero.
void check_plain(Bytes hidden) {
  const bool none = ::sodium_is_zero(raw(hidden.last(check_bytes)), check_bytes) == 1;
  if (!none && !checksum_fits(hidden)) refuse("its checksum does not fit: the key was damaged");
}

}  // namespace

std::string to_string(KeyId id) { return fmt::format("{:016X}", id.value); }

std::string to_string(const PublicKey& key) {
  std::array<std::byte, public_bytes> bytes{std::byte{'E'}, std::byte{'d'}};
  native::store(std::span<std::byte>(bytes), 2, key.id.value);
  std::ranges::copy(key.bytes, bytes.begin() + 2 + sizeof(KeyId));
  return native::encode_base64(bytes);
}

PublicKey parse_public_key(std::string_view text) {
  const std::string_view line = payload_line(text, "public");
  std::array<std::byte, public_bytes> bytes{};
  if (!native::decode_base64(line, bytes) || !equals(Bytes(bytes).first(2), "Ed")) {
    Secret secret(secret_bytes);
    refuse(native::decode_base64(line, secret.bytes())
               ? "it is a secret key, but a public one was asked for; never give it to anybody"
               : "it is no public key as minisign writes it: that has 56 characters of base64 that "
                 "begin with 'RW'");
  }
  PublicKey key;
  key.id.value = native::load<std::uint64_t>(bytes, 2);
  std::ranges::copy(Bytes(bytes).last(key.bytes.size()), key.bytes.begin());
  return key;
}

SecretKey::SecretKey(KeyId id, Secret seed_and_public_key)
    : bytes_(std::move(seed_and_public_key)), public_key_{.id = id, .bytes = {}} {
  native::sodium_ready();
  if (bytes().size() != key_bytes) refuse("it is no secret key: one has 64 bytes");
  Secret derived(key_bytes);
  ::crypto_sign_seed_keypair(writable(public_key_.bytes), writable(derived.bytes()), raw(bytes()));
  if (::sodium_memcmp(derived.bytes().data(), bytes().data(), key_bytes) != 0) {
    refuse("its two halves do not belong together: the key was damaged");
  }
}

SecretKey parse_secret_key(std::string_view text, const AskPassword& ask) {
  native::sodium_ready();
  const std::string_view line = payload_line(text, "secret");
  Secret file(secret_bytes);
  const std::span<std::byte> bytes = file.bytes();
  if (!native::decode_base64(line, bytes) || !equals(bytes.subspan(field::signing, 2), "Ed") ||
      !equals(bytes.subspan(field::checksum, 2), "B2")) {
    refuse("it is no secret key as minisign writes it: that has 212 characters of base64");
  }
  const Bytes encryption = bytes.subspan(field::encryption, 2);
  const Bytes hidden = bytes.subspan(field::hidden);
  if (equals(encryption, "Sc")) {
    decrypt(bytes, ask);
  } else if (equals(encryption, std::string_view("\0\0", 2))) {
    check_plain(hidden);
  } else {
    refuse("it is encrypted in a way that this build does not know");
  }
  Secret key(key_bytes);
  std::ranges::copy(hidden.subspan(sizeof(KeyId), key_bytes), key.bytes().begin());
  return {KeyId{native::load<std::uint64_t>(hidden, 0)}, std::move(key)};
}

SecretKey read_secret_key(const FileSystem& files, const FileSystem::Path& path,
                          const AskPassword& ask) {
  const std::unique_ptr<File> file = files.open(path);
  const std::int64_t size = file->size_bytes();
  try {
    if (size > longest_file_bytes) {
      refuse(fmt::format("it has {} bytes, but a key has at most {}", size, longest_file_bytes));
    }
    Secret content(static_cast<std::size_t>(size));
    file->read_at(0, content.bytes());
    const Bytes bytes = content.bytes();
    return parse_secret_key({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, ask);
  } catch (const Error& error) {
    if (error.code() != Errc::invalid_argument) throw;
    refuse(fmt::format("cannot use the secret key '{}': {}", path.string(), error.what()));
  }
}

}  // namespace remesh
