#pragma once

#include <optional>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "remesh/schema/pieces.hpp"

namespace remesh::test {

/// The box of a tensor that a rank holds, of layouts that give each rank one at most.
inline std::optional<Box> box_on(const Layout& layout, std::span<const TensorDesc> tensors,
                                 std::size_t tensor, Rank rank) {
  const std::vector<Box> boxes = Pieces(layout, tensors).on(tensor, rank);
  EXPECT_LE(boxes.size(), 1U) << to_string(tensors[tensor]) << " on rank " << rank;
  return boxes.empty() ? std::nullopt : std::optional(boxes.front());
}

}  // namespace remesh::test
