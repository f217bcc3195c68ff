#include "tensor_numbers.hpp"

#include <algorithm>

namespace remesh::detail {
namespace {

int bias_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 1023;
    case DType::f16:
    case DType::f8_e5m2:
      return 15;
    case DType::f8_e4m3:
      return 7;
    default:
      return 127;
  }
}

// Denormals have the field 0 and the exponent of the field 1; how small they are is not counted.
int exponent_of(DType dtype, int field) { return std::max(field, 1) - bias_of(dtype); }

TensorNumbers described(const TensorDesc& desc, const NumberCounts& counts) {
  TensorNumbers numbers;
  numbers.name = desc.name;
  numbers.dtype = desc.dtype;
  numbers.elements = counts.elements;
  numbers.zeros = counts.zeros;
  numbers.nans = counts.nans;
  numbers.infinities = counts.infinities;
  numbers.denormals = counts.denormals;
  numbers.negatives = counts.negatives;
  if (counts.most_exponent >= 0) {
    numbers.least_exponent = exponent_of(desc.dtype, counts.least_exponent);
    numbers.most_exponent = exponent_of(desc.dtype, counts.most_exponent);
  }
  return numbers;
}

}  // namespace

std::vector<TensorNumbers> tensor_numbers(const ReadNumbers& read) {
  std::vector<TensorNumbers> all;
  all.reserve(read.sound.size());
  for (std::size_t k = 0; k < read.sound.size(); ++k) {
    if (!read.sound[k] || !is_counted(read.desc(k).dtype)) continue;
    all.push_back(described(read.desc(k), read.numbers.of(k)));
  }
  return all;
}

}  // namespace remesh::detail
