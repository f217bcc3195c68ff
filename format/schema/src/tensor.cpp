#include "remesh/schema/tensor.hpp"

#include <fmt/format.h>

namespace remesh {

std::int64_t num_bytes(DType dtype, const Box& box) noexcept {
  const std::int64_t width = bits(dtype);
  if (width % 8 == 0) return box.num_elements() * (width / 8);  // their bits need not fit
  return box.num_elements() * width / 8;
}

std::int64_t num_bytes(const TensorDesc& tensor) noexcept {
  return num_bytes(tensor.dtype, tensor.extent);
}

std::string to_string(const TensorDesc& tensor) {
  return fmt::format("'{}' ({}, {})", tensor.name, to_string(tensor.dtype),
                     to_string(tensor.extent));
}

}  // namespace remesh
