// manifest.json, any bytes: refused with an id, or read; and what is read is written to the same.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "manifest.hpp"
#include "remesh/core/error.hpp"

namespace {

using namespace remesh::native;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Manifest manifest = parse_manifest(text);
    const std::string canonical = to_json(manifest);
    require(to_json(parse_manifest(canonical)) == canonical);
  } catch (const remesh::Error& error) {
    require(!error.id().empty());
  }
  return 0;
}
