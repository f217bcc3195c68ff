// How long it takes to say what one rank of a large job holds: every tensor of a model, from a
// config.json and a mesh, without a checkpoint. With ZERO, three states of each parameter too.
//
//   one_rank CONFIG.json MESH RANK [ZERO]
//
// Prints the median milliseconds of 7 evaluations (the layout is there; lines are worked out anew
// in each), and on standard error what the rank holds.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "remesh/core/error.hpp"
#include "remesh/models/model_map.hpp"
#include "remesh/schema/mesh_text.hpp"
#include "remesh/schema/pieces.hpp"
#include "remesh/schema/sharding.hpp"

namespace remesh {
namespace {

std::vector<TensorDesc> with_states(const std::vector<TensorDesc>& parameters) {
  std::vector<TensorDesc> all = parameters;
  for (const char* state : {"@master", "@exp_avg", "@exp_avg_sq"}) {
    for (const TensorDesc& tensor : parameters) {
      all.push_back({tensor.name + state, DType::f32, tensor.extent});
    }
  }
  return all;
}

int run(const std::string& config_path, const std::string& mesh_text, Rank rank,
        std::optional<int> zero) {
  std::ifstream file(config_path, std::ios::binary);
  const std::string config{std::istreambuf_iterator<char>(file), {}};
  const ModelMap* const map = shipped_map(config);
  if (map == nullptr) throw Error(Errc::not_found, "no map fits " + config_path);
  std::vector<TensorDesc> tensors = map->needed_tensors(config, DType::bf16);
  if (zero) tensors = with_states(tensors);
  const Layout layout = sharded(map->place(tensors, config, parse_mesh(mesh_text)), tensors,
                                {zero.value_or(0), {}, {}});

  std::array<double, 7> milliseconds{};
  std::int64_t bytes = 0;
  std::int64_t boxes = 0;
  for (double& one : milliseconds) {
    const auto begin = std::chrono::steady_clock::now();
    bytes = boxes = 0;
    const Pieces pieces(layout, tensors);
    for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
      for (const Box& box : pieces.on(tensor, rank)) {
        bytes += num_bytes(tensors[tensor].dtype, box);
        ++boxes;
      }
    }
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - begin;
    one = taken.count();
  }
  std::ranges::sort(milliseconds);
  std::fprintf(stderr, "%lld ranks, %zu tensors; rank %lld holds %lld boxes, %lld bytes\n",
               static_cast<long long>(layout.mesh().num_ranks()), tensors.size(),
               static_cast<long long>(rank), static_cast<long long>(boxes),
               static_cast<long long>(bytes));
  std::printf("%.3f\n", milliseconds[milliseconds.size() / 2]);
  return 0;
}

}  // namespace
}  // namespace remesh

int main(int argc, char** argv) {
  try {
    if (argc < 4) throw std::runtime_error("usage: one_rank CONFIG.json MESH RANK [ZERO]");
    return remesh::run(argv[1], argv[2], std::stoll(argv[3]),
                       argc > 4 ? std::optional(std::stoi(argv[4])) : std::nullopt);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "one_rank: %s\n", error.what());
    return 1;
  }
}
