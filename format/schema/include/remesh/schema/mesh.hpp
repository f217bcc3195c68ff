#pragma once

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
class Mesh {
 public:
  /// The order of ranks where nobody says another one; the leftmost counts fastest.
  static constexpr std::string_view default_order = "tp-cp-ep-dp-pp";

  /// One rank, no axes.
  Mesh() = default;

  /// Throws Error(invalid_argument) on a repeated axis, a size below 1, or more than 2^31 ranks.
  explicit Mesh(std::vector<Axis> axes_fastest_first);

  Index num_ranks() const noexcept;
  std::span<const Axis> axes() const noexcept { return axes_; }

  /// How many ways `axis` splits: 1 where the mesh has no such axis.
  Index size(std::string_view axis) const noexcept;

  /// The position of `rank` along `axis`: 0 where the mesh has no such axis.
  Index coordinate(Rank rank, std::string_view axis) const noexcept;

  friend bool operator==(const Mesh&, const Mesh&) = default;

 private:
  std::vector<Axis> axes_;
};

/// "tp=2,cp=1,dp=1,pp=2 (4 ranks, order tp-cp-dp-pp)": both meshes of a job are printed like this.
std::string describe(const Mesh& mesh);

}  // namespace remesh
