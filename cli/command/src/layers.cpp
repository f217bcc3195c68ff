#include "layers.hpp"

#include <algorithm>
#include <charconv>

namespace remesh {
namespace {

// The most digits that a number of a layer has: other numbers are something else.
constexpr std::size_t most_digits = 6;

bool is_number(std::string_view part) {
  return !part.empty() && part.size() <= most_digits &&
         std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
}

std::int64_t number_in(std::string_view part) {
  std::int64_t number = 0;
  std::from_chars(part.data(), part.data() + part.size(), number);
  return number;
}

}  // namespace

LayerName layer_of(std::string_view name) {
  LayerName found;
  found.kind.reserve(name.size());
  std::string_view before;
  while (true) {
    const std::size_t dot = name.find('.');
    const std::string_view part = name.substr(0, dot);
    if (is_number(part)) {
      if (found.layer == no_layer && before != "experts") found.layer = number_in(part);
      found.kind += '*';
    } else {
      found.kind += part;
    }
    if (dot == std::string_view::npos) return found;
    found.kind += '.';
    before = part;
    name.remove_prefix(dot + 1);
  }
}

std::map<std::int64_t, std::int64_t> bytes_by_layer(std::span<const TensorDesc> tensors) {
  std::map<std::int64_t, std::int64_t> bytes;
  for (const TensorDesc& tensor : tensors) bytes[layer_of(tensor.name).layer] += num_bytes(tensor);
  return bytes;
}

}  // namespace remesh
