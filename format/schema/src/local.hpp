#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "remesh/schema/layout.hpp"

namespace remesh::detail {

/// What the splits and pins of a placement leave a rank of a tensor: for each dim the ranges of its
/// indices. What the rank has is, in its own order, a row-major tensor of these sizes.
struct Local {
  std::vector<std::vector<Range>> dims;

  Index size(std::size_t dim) const noexcept;
  Index num_elements() const noexcept;
};

/// Nothing where the rank's coordinates are not those to which the tensor is pinned.
/// Throws as Pieces::on does.
std::optional<Local> local_of(const Layout& layout, std::size_t tensor, const TensorDesc& desc,
                              Rank rank);

/// The elements [begin, end) of what a rank has, in its own order, as boxes of the whole tensor, in
/// that order. Precondition: 0 <= begin <= end <= local.num_elements().
std::vector<Box> boxes_of(const Local& local, Index begin, Index end);

/// The position of `rank` along several axes taken as one index.
struct Joint {
  Index count = 1;
  Index at = 0;
};
Joint joint_of(const std::vector<std::string>& axes, const Mesh& mesh, Rank rank);

}  // namespace remesh::detail
