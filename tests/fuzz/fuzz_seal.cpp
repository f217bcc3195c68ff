// remesh-seal.json, any bytes: refused with an id, or read; and what is read is written to the
// same. A fuzzer cannot find digests, so the text gets the one that it should end in.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "remesh/core/error.hpp"
#include "remesh/store/certificate.hpp"
#include "remesh/store/seal.hpp"

namespace {

using namespace remesh;

void require(bool condition) {
  if (!condition) std::abort();
}

void ask(const Seal& seal) {
  const auto files = seal.extents.files();
  require(seal.rest.size() == files.size());
  require(seal.digests.size() == seal.tensors.size());
  for (const Extent& extent : seal.extents.extents()) {
    require(extent.file < files.size() && extent.tensor < seal.tensors.size());
    require(extent.length_bytes <= files[extent.file].size_bytes - extent.offset_bytes);
    require(std::ssize(seal.extents.blocks(extent)) == num_blocks(extent));
  }
  const std::string canonical = seal_text(seal);
  require(seal_text(parse_seal(canonical)) == canonical);
}

void try_text(std::string_view text) {
  try {
    ask(parse_seal(text));
  } catch (const Error& error) {
    require(!error.id().empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_text(text);
  // What stands before the end, or all of it, with the right end.
  std::string sealed(text.substr(0, text.rfind(certificate_end)));
  const Digest digest = digest_of(std::as_bytes(std::span(sealed)));
  sealed += certificate_end;
  sealed += to_string(digest);
  sealed += "\"}";
  try_text(sealed);
  return 0;
}
