#pragma once

#include <cstdint>
#include <optional>
#include <span>
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

/// What happens where there are more coordinates than groups, or as many as do not divide them.
enum class Beyond : std::uint8_t {
  refuse = 1,
  share = 2,   ///< a multiple of the groups is legal: neighbours hold the same group
  divide = 3,  ///< any number is legal: groups are cut, and what is divided is the dim alone
};

/// A run of indices of a dim that is divided by itself: gate and up, or q, k and v, of one tensor.
struct Part {
  Index size = 0;
  Index groups = 0;  ///< 0, or the number of equal groups in it that stay whole
  Beyond beyond = Beyond::refuse;

  friend bool operator==(const Part&, const Part&) = default;
};

/// One dim of a tensor, divided over the coordinates of some axes.
struct Split {
  int dim = 0;
  std::vector<std::string> over;  ///< axes taken as ONE index, the first fastest
  SplitRule rule = SplitRule::balanced;
  std::vector<Index> sizes;  ///< for SplitRule::sizes: elements for each index
  /// 0, or the number of equal groups that make up the dim and stay whole: attention heads.
  Index groups = 0;
  Beyond beyond = Beyond::refuse;
  /// Borders fall on multiples of this, from the dim's first index on: the rows that share a scale,
  /// or what a vocabulary is padded to (with SplitRule::chunk, 50257 over tp 8 in blocks of 128 is
  /// Megatron's 6400 rows each, the last rank's padding left out).
  Index block = 1;
  /// Where not 1: an index stands for so many of what is divided, the last one for the rest of
  /// `whole`: the scales of blocks, which are divided as their weight is.
  Index per = 1;
  Index whole = 0;          ///< with `per`: the size of the weight's dim
  std::vector<Part> parts;  ///< empty, or what the dim consists of; instead of `groups`
  std::string unit;         ///< what a group is, for errors: "attention heads"

  friend bool operator==(const Split&, const Split&) = default;
};

/// To which coordinates of an axis a tensor is confined. `layer`, `first`, `last` and `ends` go by
/// the layout's Stages, so that they mean the same on every mesh.
enum class PinTo : std::uint8_t {
  coordinates = 1,  ///< those listed
  layer = 2,        ///< the stage that has the tensor's layer
  first = 3,
  last = 4,
  ends = 5,    ///< first and last: tied embeddings
  expert = 6,  ///< that whose share of all experts has the tensor's
};

struct Pin {
  std::string axis;
  PinTo to = PinTo::coordinates;
  std::vector<Index> coordinates;  ///< for PinTo::coordinates, ascending
  Index experts = 0;               ///< for PinTo::expert: how many there are in a layer

  friend bool operator==(const Pin&, const Pin&) = default;
};

/// Which tensors follow each other in one line of elements.
enum class FlatUnit : std::uint8_t {
  all = 1,     ///< all that have an equal Flat: ZeRO-1 and 2, Megatron's distributed optimizer
  layer = 2,   ///< those of one layer: FSDP1
  tensor = 3,  ///< each by itself: ZeRO-3
};

/// The elements that a rank would have without it, tensor after tensor, as one line that is divided
/// into equal ranges. A tensor's elements come row-major as that rank holds them, after its splits;
/// tensors come in the catalog's order, those that the rank does not have are left out.
///
/// Paddings belong to the line: nobody stores them.
struct Flat {
  std::vector<std::string> over;  ///< axes taken as ONE index, the first fastest
  FlatUnit unit = FlatUnit::all;
  std::string name;       ///< tensors with other names are on other lines: "exp_avg"
  bool reversed = false;  ///< the last tensor comes first, as in Megatron's buffers
  Index align = 1;        ///< each tensor starts at a multiple of this
  /// 0: the line is one bucket. Otherwise a bucket ends behind the tensor with which it has so many
  /// elements, and each bucket is divided by itself.
  Index bucket = 0;
  Index pad = 1;       ///< a bucket's length is a multiple of this ...
  Index pad_each = 1;  ///< ... and each range's of this: DeepSpeed has 2

  friend bool operator==(const Flat&, const Flat&) = default;
};

/// How one tensor lies over a mesh. An axis that nothing here names replicates it. Splits apply in
/// the written order, each to what the one before left: two splits of one dim nest. What is left in
/// the end is dealt as a part of a line, if there is one.
struct Placement {
  std::vector<Split> splits;
  std::vector<Pin> pins;
  std::optional<Flat> flat;

  friend bool operator==(const Placement&, const Placement&) = default;
};

/// The part of `ranges`, taken as one run of indices, that falls to index `at` of `count`:
/// ascending, disjoint, none empty, neighbours joined.
///
/// Throws Error(invalid_argument), naming both numbers, where the groups cannot be divided so,
/// where listed sizes or parts do not add up or are not `count`, or where a border would cut a
/// block.
std::vector<Range> split_ranges(const Split& split, std::span<const Range> ranges, Index count,
                                Index at);

/// The same of one range, by a split without parts and `per`; where nothing falls to `at`, it is an
/// empty range between its neighbours.
Range split_range(const Split& split, Range range, Index count, Index at);

/// "split dim 0 over tp", "replicated", "split dim 1 over tp, pinned to pp 3".
std::string to_string(const Placement& placement);

}  // namespace remesh
