// A signature file, or a key, any bytes: refused as promised, or read. No mutation makes a
// signature over a content, or with a trusted comment, that the key did not sign.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "remesh/core/error.hpp"
#include "remesh/store/signature.hpp"

namespace {

using namespace remesh;

void require(bool condition) {
  if (!condition) std::abort();
}

// Of the kept inputs: two signatures over this content, with this comment.
constexpr std::string_view key_line = "RWSnFX2UA59giCuMd+t8oAWFV0rI5ZbTqPYI5xVH9R9XwQBIhXlORLv7";
constexpr std::string_view content = "hello";
constexpr std::string_view comment = "step:1000";

void read_as_signature(std::string_view text, const PublicKey& key) {
  try {
    require(check_signature(std::as_bytes(std::span(content)), text, key) == comment);
  } catch (const Error& error) {
    require(error.code() == Errc::unsafe && !error.id().empty());
  }
}

void read_as_public_key(std::string_view text) {
  try {
    const PublicKey key = parse_public_key(text);
    require(parse_public_key(to_string(key)) == key);
  } catch (const Error& error) {
    require(error.code() == Errc::invalid_argument);
  }
}

// Without a password: to try one takes seconds.
void read_as_secret_key(std::string_view text) {
  try {
    const SecretKey key = parse_secret_key(text, {});
    require(check_signature({}, sign({}, key, comment), key.public_key()) == comment);
  } catch (const Error& error) {
    require(error.code() == Errc::invalid_argument);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const PublicKey key = parse_public_key(key_line);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_as_signature(text, key);
  read_as_public_key(text);
  read_as_secret_key(text);
  return 0;
}
