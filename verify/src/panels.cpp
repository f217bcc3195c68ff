#include "panels.hpp"

#include <algorithm>

namespace remesh::detail {

Panels::Panels(const TensorDesc& desc, std::int64_t most_bytes)
    : whole_(desc.extent), cut_dim_(desc.extent.ndim() - 1) {
  if (cut_dim_ < 0) return;
  const std::int64_t width = bits(desc.dtype);
  const Index row = whole_[cut_dim_].size();
  const bool narrow = width % 8 != 0;
  if (narrow && (cut_dim_ == 0 || row * width % 8 != 0)) {
    cut_dim_ = -1;
    return;
  }
  if (narrow) inner_ = whole_[cut_dim_--].size();
  while (cut_dim_ > 0 && inner_ * whole_[cut_dim_].size() * width / 8 <= most_bytes) {
    inner_ *= whole_[cut_dim_--].size();
  }
  const Index size = whole_[cut_dim_].size();
  step_ = std::clamp<Index>(most_bytes / (inner_ * width / 8), 1, size);
  steps_ = (size + step_ - 1) / step_;
  count_ = steps_;
  for (int dim = 0; dim < cut_dim_; ++dim) count_ *= whole_[dim].size();
}

Index Panels::first(Index number) const noexcept {
  if (cut_dim_ < 0) return 0;
  return (number / steps_ * whole_[cut_dim_].size() + number % steps_ * step_) * inner_;
}

Box Panels::box(Index number) const {
  Box box = whole_;
  if (cut_dim_ < 0) return box;
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
