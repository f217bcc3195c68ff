#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/schema/tensor.hpp"

namespace remesh {

/// One kind of parallelism and how many ways it splits: {"tp", 8}.
struct Axis {
  std::string name;
  Index size = 1;

  friend bool operator==(const Axis&, const Axis&) = default;
};

/// The ranks of a checkpoint, arranged along named axes. The first axis counts fastest, as in
/// Megatron's order strings: in the order "tp-dp-pp", {tp 8, dp 4, pp 2} is 64 ranks, and rank 9
/// sits at tp 1, dp 1, pp 0.
///
/// The same ranks may carry a second grid, for the experts of a mixture: etp, ep, edp and pp. Both
/// grids have the same pipeline stages. Where there is none, experts lie as all else does: etp is
/// tp, ep is 1, and edp is cp and dp as one index, cp the faster.
class Mesh {
 public:
  /// The order of ranks where nobody says another one; the leftmost counts fastest. The experts'
  /// grid follows it: etp stands for tp, edp for dp, and cp falls away.
  static constexpr std::string_view default_order = "tp-cp-ep-dp-pp";

  /// One rank, no axes.
  Mesh() = default;

  /// `expert_axes_fastest_first`: empty where the experts have no grid of their own.
  /// `virtual_stages`: how many stages of the pipeline each coordinate of pp has (vpp).
  ///
  /// Throws Error(invalid_argument) on a repeated axis, an axis other than pp that stands in both
  /// grids, a size below 1, more than 2^31 ranks, grids of different ranks or with other pipeline
  /// stages (with both numbers), or virtual stages without a pipeline.
  explicit Mesh(std::vector<Axis> axes_fastest_first,
                std::vector<Axis> expert_axes_fastest_first = {}, Index virtual_stages = 1);

  Index num_ranks() const noexcept;
  std::span<const Axis> axes() const noexcept { return axes_; }
  std::span<const Axis> expert_axes() const noexcept { return expert_axes_; }
  Index virtual_stages() const noexcept { return virtual_stages_; }

  /// How many ways `axis` splits, whichever grid has it: 1 where none has.
  Index size(std::string_view axis) const noexcept;

  /// The position of `rank` along `axis`: 0 where no grid has it.
  Index coordinate(Rank rank, std::string_view axis) const noexcept;

  /// The rank at position 0 along `axis`, and where `rank` is along the other axes of that grid.
  Rank first_along(std::string_view axis, Rank rank) const noexcept;

  friend bool operator==(const Mesh&, const Mesh&) = default;

 private:
  std::vector<Axis> axes_;
  std::vector<Axis> expert_axes_;
  Index virtual_stages_ = 1;
};

/// "tp=2,cp=1,dp=1,pp=2 (4 ranks, order tp-cp-dp-pp)": both meshes of a job are printed like this.
/// With experts: "tp=2,cp=1,dp=2,pp=2; etp=1,ep=2,edp=2 (8 ranks, order tp-cp-dp-pp;
/// etp-ep-edp-pp)".
std::string describe(const Mesh& mesh);

}  // namespace remesh
