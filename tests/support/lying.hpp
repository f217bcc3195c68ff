#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
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

/// What each rank holds of a tensor, as text: "[0, 2) x [0, 4) + [2, 3) x [0, 1)"; "-": nothing.
inline std::vector<std::string> held_by_ranks(const Layout& layout,
                                              std::span<const TensorDesc> tensors,
                                              std::size_t tensor) {
  const Pieces pieces(layout, tensors);
  std::vector<std::string> all;
  for (Rank rank = 0; rank < layout.mesh().num_ranks(); ++rank) {
    std::string text;
    for (const Box& box : pieces.on(tensor, rank)) {
      text += (text.empty() ? "" : " + ") + to_string(box);
    }
    all.push_back(text.empty() ? "-" : text);
  }
  return all;
}

/// A split of one dim over some axes, without more.
inline Split over(int dim, std::vector<std::string> axes, SplitRule rule = SplitRule::balanced) {
  Split split;
  split.dim = dim;
  split.over = std::move(axes);
  split.rule = rule;
  return split;
}

}  // namespace remesh::test
