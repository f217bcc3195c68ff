#pragma once

#include <cstddef>
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
  /// Borders fall on multiples of this, from the dim's first index on: what a vocabulary is padded
  /// to (with SplitRule::chunk, 50257 over tp 8 in blocks of 128 is Megatron's 6400 rows each, the
  /// last rank's padding left out), or pairs that stay together.
  Index block = 1;
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

/// A dim of a tensor in blocks that have a scale each, or of those scales. Whatever divides the dim
/// divides it between blocks, and the scales as their weight.
struct Scaled {
  int dim = 0;
  Index block = 1;
  Index of =
      0;  ///< of scales: the size of the weight's dim, of which each has `block`, the last the rest

  friend bool operator==(const Scaled&, const Scaled&) = default;
};

/// The largest numbers that a placement may have: so that no product of theirs leaves 63 bits, and
/// whatever can be written can be read.
inline constexpr Index most_block = Index{1} << 20;    ///< of Split::block, Scaled::block
inline constexpr Index most_padding = Index{1} << 20;  ///< of Flat::align, pad, pad_each
inline constexpr Index most_run = Index{1} << 40;      ///< of Flat::bucket, Part::size, Scaled::of
inline constexpr std::size_t most_listed = 1 << 16;    ///< of Split::sizes
inline constexpr std::size_t most_steps = 64;          ///< splits, pins, parts, axes of one split

/// How one tensor lies over a mesh. An axis that nothing here names replicates it. Splits apply in
/// the written order, each to what the one before left: two splits of one dim nest. What is left in
/// the end is dealt as a part of a line, if there is one.
struct Placement {
  std::vector<Split> splits;
  std::vector<Pin> pins;
  std::optional<Flat> flat;
  std::vector<Scaled> scaled;  ///< one for each dim at most

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

/// The same of a dim that is `scaled`, in blocks or of scales.
std::vector<Range> split_ranges(const Split& split, const Scaled& scaled,
                                std::span<const Range> ranges, Index count, Index at);

/// What `placement` says of a dim; null if it is not scaled.
const Scaled* scaled_dim(const Placement& placement, int dim) noexcept;

/// The same of one range, by a split without parts; where nothing falls to `at`, it is an empty
/// range between its neighbours.
Range split_range(const Split& split, Range range, Index count, Index at);

/// "split dim 0 over tp", "replicated", "split dim 1 over tp, pinned to pp 3".
std::string to_string(const Placement& placement);

}  // namespace remesh
