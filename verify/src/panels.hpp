#pragma once

#include <cstdint>

#include "remesh/schema/tensor.hpp"

namespace remesh::detail {

/// A tensor cut into boxes of some bytes, which together have each element once: one index in each
/// dim before some dim, a few indices there, and all behind it.
class Panels {
 public:
  /// Precondition: the tensor has dims and elements, and elements have whole bytes.
  Panels(const TensorDesc& desc, std::int64_t most_bytes);

  Index count() const noexcept { return count_; }
  Box box(Index number) const;

 private:
  Box whole_;
  int cut_dim_ = 0;
  Index step_ = 1;
  Index steps_ = 1;
  Index count_ = 1;
};

}  // namespace remesh::detail
