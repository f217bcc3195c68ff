#include "panels.hpp"

#include <algorithm>

namespace remesh::detail {

Panels::Panels(const TensorDesc& desc, std::int64_t most_bytes)
    : whole_(desc.extent), cut_dim_(desc.extent.ndim() - 1) {
  std::int64_t inner = bits(desc.dtype) / 8;
  while (cut_dim_ > 0 && inner * whole_[cut_dim_].size() <= most_bytes) {
    inner *= whole_[cut_dim_--].size();
  }
  const Index size = whole_[cut_dim_].size();
  step_ = std::clamp<Index>(most_bytes / inner, 1, size);
  steps_ = (size + step_ - 1) / step_;
  count_ = steps_;
  for (int dim = 0; dim < cut_dim_; ++dim) count_ *= whole_[dim].size();
}

Box Panels::box(Index number) const {
  Box box = whole_;
  const Index begin = number % steps_ * step_;
  box[cut_dim_] = {begin, std::min(begin + step_, whole_[cut_dim_].end)};
  number /= steps_;
  for (int dim = cut_dim_ - 1; dim >= 0; --dim) {
    const Index size = whole_[dim].size();
    box[dim] = {number % size, number % size + 1};
    number /= size;
  }
  return box;
}

}  // namespace remesh::detail
