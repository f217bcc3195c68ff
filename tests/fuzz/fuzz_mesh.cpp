// A mesh as text: whatever is accepted is written and read back to the same mesh.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "remesh/core/error.hpp"
#include "remesh/schema/mesh_text.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace remesh;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const Mesh same = parse_mesh("tp=2,dp=3,order=dp-tp-cp-pp");
  try {
    const Mesh mesh = parse_mesh(text, same);
    if (parse_mesh(to_text(mesh)) != mesh) std::abort();
  } catch (const Error&) {
    return 0;  // refusing is fine
  }
  return 0;
}
