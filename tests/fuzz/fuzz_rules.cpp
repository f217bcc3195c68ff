// A model map as a user writes it, placed on a small model: it is refused, or it places every
// tensor so that no element is lost.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "remesh/core/error.hpp"
#include "remesh/models/model_map.hpp"
#include "remesh/schema/mesh_text.hpp"
#include "remesh/schema/pieces.hpp"

namespace {

using namespace remesh;

constexpr std::string_view config =
    R"({"model_type": "tiny", "d": 8, "f": 12, "n": 2, "h": 4, "g": 2, "v": 10, "tied": true, "bias": false})";

const std::vector<TensorDesc>& tensors() {
  static const std::vector<TensorDesc> all{
      {"embed", DType::f32, Box{{0, 10}, {0, 8}}},  {"h.0.q", DType::f32, Box{{0, 8}, {0, 8}}},
      {"h.0.up", DType::f32, Box{{0, 12}, {0, 8}}}, {"h.1.q", DType::f32, Box{{0, 8}, {0, 8}}},
      {"h.1.up", DType::f32, Box{{0, 12}, {0, 8}}}, {"norm", DType::f32, Box{{0, 8}}}};
  return all;
}

void place_on(const ModelMap& map, std::span<const TensorDesc> some, const char* text) {
  const Layout layout = map.place(some, config, parse_mesh(text));
  const Pieces pieces(layout, some);
  for (std::size_t i = 0; i < some.size(); ++i) {
    Index elements = 0;
    for (const HeldBox& held : pieces.of(i)) elements += held.box.num_elements();
    if (elements != some[i].extent.num_elements()) std::abort();
  }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const ModelMap map = ModelMap::parse({reinterpret_cast<const char*>(data), size}, "fuzz.toml");
    if (map.state_dict_order(tensors()).size() != tensors().size()) std::abort();
    for (const char* mesh : {"tp=1", "tp=2,pp=2", "tp=4,dp=2", "cp=3,pp=2"}) {
      try {
        place_on(map, tensors(), mesh);
      } catch (const Error&) {
        continue;  // this mesh is refused; another may be legal
      }
    }
    map.needed_tensors(config, DType::f32);
  } catch (const Error&) {
    return 0;  // refusing is fine
  }
  return 0;
}
