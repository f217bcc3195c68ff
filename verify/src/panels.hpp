#pragma once

#include <cstdint>

#include "remesh/schema/tensor.hpp"

namespace remesh::detail {

/// A tensor cut into boxes of some bytes, which together have each element once: one index in each
/// dim before some dim, a few indices there, and all behind it. So the elements of a panel follow
/// each other, and panels are in row-major order. A scalar is one panel; so is a tensor whose rows
/// are no whole bytes, and rows of elements narrower than a byte are not cut, however large.
class Panels {
 public:
  /// Precondition: the tensor has elements.
  Panels(const TensorDesc& desc, std::int64_t most_bytes);

  Index count() const noexcept { return count_; }
  Box box(Index number) const;
  /// The number of its first element, among all of the tensor.
  Index first(Index number) const noexcept;

 private:
  Box whole_;
  int cut_dim_ = 0;
  Index step_ = 1;
  Index steps_ = 1;
  Index count_ = 1;
  Index inner_ = 1;  // elements of one index in the dim that is cut
};

}  // namespace remesh::detail
