#include "remesh/schema/catalog.hpp"

#include <algorithm>

namespace remesh {

std::optional<std::size_t> Catalog::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(tensors, name, &TensorDesc::name);
  if (found == tensors.end()) return std::nullopt;
  return static_cast<std::size_t>(found - tensors.begin());
}

std::int64_t payload_bytes(const Catalog& catalog) noexcept {
  std::int64_t sum = 0;
  for (const TensorDesc& tensor : catalog.tensors) sum += num_bytes(tensor);
  return sum;
}

}  // namespace remesh
