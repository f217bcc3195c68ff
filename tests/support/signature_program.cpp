// Signs and checks files as the libraries do, for tests that compare with other programs.
//
//     signature_program sign KEY FILE COMMENT [PASSWORD]     prints the signature file
//     signature_program check PUBLIC_KEY FILE SIGNATURE      prints the trusted comment
//
// Exits with 1 and prints id and message if the library refuses.

#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "remesh/core/error.hpp"
#include "remesh/store/file_system.hpp"
#include "remesh/store/signature.hpp"

namespace {

constexpr std::int64_t limit_bytes = 1 << 20;

std::string content_of(const std::string& path) {
  return remesh::read_text(remesh::posix_file_system(), path, limit_bytes);
}

std::string result_of(const std::vector<std::string>& words) {
  const std::string content = content_of(words[2]);
  const auto bytes = std::as_bytes(std::span(content));
  if (words[0] == "check") {
    return remesh::check_signature(bytes,
                                   remesh::read_signature(remesh::posix_file_system(), words[3]),
                                   remesh::parse_public_key(content_of(words[1])));
  }
  remesh::AskPassword ask;
  if (words.size() > 4) ask = [&] { return remesh::Secret(words[4]); };
  const auto key = remesh::read_secret_key(remesh::posix_file_system(), words[1], ask);
  return remesh::sign(bytes, key, words[3]);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() < 4 || (words[0] != "sign" && words[0] != "check")) return 2;
  try {
    std::fputs(result_of(words).c_str(), stdout);
    return 0;
  } catch (const remesh::Error& error) {
    std::printf("%s %s\n", error.id().c_str(), error.what());
    return 1;
  }
}
