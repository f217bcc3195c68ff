#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "remesh/schema/pieces.hpp"
#include "remesh/schema/tensor.hpp"

/// @file
/// Decides which elements travel from which rank to which, and nothing else. A plan is a value: it
/// can be printed, costed, tested and thrown away without touching a checkpoint.

namespace remesh {

/// Elements that leave one rank and arrive at another. A move with source == target is a copy
/// within one rank's memory, and costs no network.
struct Move {
  Rank source = 0;
  Rank target = 0;
  Box box;  ///< in the coordinates of the whole tensor

  friend bool operator==(const Move&, const Move&) = default;
};

/// Plans how one tensor gets from where it is held to where it is wanted.
///
/// Every element of every wanted piece arrives exactly once. An element that the target already
/// holds does not travel. Where several ranks hold the same box, targets take turns to ask them, so
/// that replicas share the sending. The result depends on the arguments alone, and not on the order
/// of holders.
///
/// @param held    the source layout's distinct boxes, disjoint, with their holders
/// @param wanted  the target layout's distinct boxes with those that want them
/// @throws Error(incomplete) if nobody holds some wanted element. The message names the tensor, the
///         target rank and the missing box.
///
/// The moves are ordered by wanted box, then target rank, then held box.
/// Costs O(overlaps * targets + wanted * log held) for boxes that are cut along few dims.
std::vector<Move> plan_tensor(const TensorDesc& tensor, std::span<const HeldBox> held,
                              std::span<const HeldBox> wanted);

/// A part that one source piece and one target piece share: what is copied, disk to disk.
struct Overlap {
  std::uint32_t source = 0;  ///< its number among the source boxes
  std::uint32_t target = 0;  ///< its number among the target boxes
  Box box;

  friend bool operator==(const Overlap&, const Overlap&) = default;
};

/// All pairs of a source and a target box that share elements, ordered by target, then source.
std::vector<Overlap> overlaps(std::span<const Box> source, std::span<const Box> target);

}  // namespace remesh
