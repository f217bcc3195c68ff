// manifest.json, any bytes: refused with an id, or read; and what is read is written to the same.
// Of some ranks it is asked what they hold, which may be refused, and lies inside of the tensor.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "manifest.hpp"
#include "remesh/core/error.hpp"
#include "remesh/schema/pieces.hpp"

namespace {

using namespace remesh::native;

void require(bool condition) {
  if (!condition) std::abort();
}

void ask(const remesh::Catalog& catalog) {
  constexpr std::size_t most_tensors = 8;
  const remesh::Pieces pieces(catalog.layout, catalog.tensors);
  for (std::size_t tensor = 0; tensor < std::min(most_tensors, catalog.tensors.size()); ++tensor) {
    for (const remesh::Rank rank : {remesh::Rank{0}, catalog.layout.mesh().num_ranks() - 1}) {
      try {
        for (const remesh::Box& box : pieces.on(tensor, rank)) {
          require(contains(catalog.tensors[tensor].extent, box));
        }
      } catch (const remesh::Error&) {
        continue;  // a placement that does not suit its tensor
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Manifest manifest = parse_manifest(text);
    const std::string canonical = to_json(manifest);
    require(to_json(parse_manifest(canonical)) == canonical);
    ask(manifest.catalog);
  } catch (const remesh::Error& error) {
    require(!error.id().empty());
  }
  return 0;
}
