#pragma once

#include <span>
#include <vector>

#include "remesh/schema/box.hpp"

namespace remesh {

/// What is wrong with a set of pieces that should be one replica of a tensor: disjoint boxes,
/// exact, in row-major order of their first elements, and none where nothing is wrong.
struct Coverage {
  std::vector<Box> missing;  ///< no piece has these elements
  std::vector<Box> doubled;  ///< two pieces or more have these

  bool exact() const noexcept { return missing.empty() && doubled.empty(); }
  friend bool operator==(const Coverage&, const Coverage&) = default;
};

/// Whether `pieces` have every element of `extent` exactly once: a sweep along one dim after
/// another, O(n log n) for n pieces of a grid or of a line. Empty pieces have no elements.
/// Precondition: every piece lies inside `extent`, with its ndim.
Coverage cover(const Box& extent, std::span<const Box> pieces);

/// `boxes` without the elements of `hole`: disjoint if they were. Precondition: equal ndim.
std::vector<Box> without(std::span<const Box> boxes, const Box& hole);

}  // namespace remesh
