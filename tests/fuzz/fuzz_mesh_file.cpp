// What users write about layouts: a mesh file, and a way to deal layers to stages. Either is
// refused, or what comes of it is whole: stages have every layer once, in order.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "remesh/core/error.hpp"
#include "remesh/models/mesh_file.hpp"

namespace {

using namespace remesh;

void deal(StageRule rule) {
  rule.set_costs({std::vector<double>(13, 1.5), 2, 3});
  for (const Index stages : {1, 2, 5}) {
    Stages dealt;
    try {
      dealt = rule.deal(13, stages, 2);
    } catch (const Error&) {
      continue;  // refusing is fine
    }
    if (std::ssize(dealt.layers) != 2 * stages || dealt.num_layers() != 13) std::abort();
    for (Index layer = 1; layer < 13; ++layer) {
      if (dealt.stage_of(layer) < dealt.stage_of(layer - 1)) std::abort();
    }
  }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const MeshFile file = parse_mesh_file(text, "mesh.toml");
    if (file.stages) deal(*file.stages);
  } catch (const Error&) {
  }
  try {
    deal(StageRule::parse(text));
  } catch (const Error&) {
  }
  return 0;
}
