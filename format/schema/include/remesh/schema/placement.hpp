#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "remesh/schema/box.hpp"
#include "remesh/schema/mesh.hpp"

namespace remesh {

/// Where the borders of a split fall.
enum class SplitRule : std::uint8_t {
  balanced = 1,  ///< the first ones are larger by one: 10 over 4 is 3, 3, 2, 2
  chunk = 2,     ///< torch.chunk: ceil(extent / n) each, the last ones smaller or empty: 3, 3, 3, 1
  sizes = 3,     ///< as listed
};

/// One dim of a tensor, divided over the coordinates of some axes.
struct Split {
  int dim = 0;
  std::vector<std::string> over;  ///< axes taken as ONE index, the first fastest
  SplitRule rule = SplitRule::balanced;
  std::vector<Index> sizes;  ///< for SplitRule::sizes: elements for each index
  /// 0, or the number of equal groups that make up the dim and stay whole: attention heads.
  Index groups = 0;
  /// With groups: where there are more indices than groups, and a multiple of them, neighbours hold
  /// the same group (KV heads when tp exceeds them). Otherwise that is refused.
  bool share_groups = false;
  std::string unit;  ///< what a group is, for errors: "attention heads"

  friend bool operator==(const Split&, const Split&) = default;
};

/// To which coordinates of an axis a tensor is confined. `layer`, `first`, `last` and `ends` go by
/// the layout's Stages, so that they mean the same on every mesh.
enum class PinTo : std::uint8_t {
  coordinates = 1,  ///< those listed
  layer = 2,        ///< the stage that has the tensor's layer
  first = 3,
  last = 4,
  ends = 5,  ///< first and last: tied embeddings
};

struct Pin {
  std::string axis;
  PinTo to = PinTo::coordinates;
  std::vector<Index> coordinates;  ///< for PinTo::coordinates, ascending

  friend bool operator==(const Pin&, const Pin&) = default;
};

/// How one tensor lies over a mesh. An axis that neither a split nor a pin names replicates it.
/// Splits apply in the written order, each to what the one before left: two splits of one dim nest.
struct Placement {
  std::vector<Split> splits;
  std::vector<Pin> pins;

  friend bool operator==(const Placement&, const Placement&) = default;
};

/// The part of `range` that falls to index `at` of `count`.
/// Throws Error(invalid_argument), naming both numbers, where the groups cannot be divided so, or
/// where listed sizes do not add up to the range or are not `count`.
Range split_range(const Split& split, Range range, Index count, Index at);

/// "split dim 0 over tp", "replicated", "split dim 1 over tp, pinned to pp 3".
std::string to_string(const Placement& placement);

}  // namespace remesh
