#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "remesh/schema/mesh.hpp"
#include "remesh/schema/placement.hpp"
#include "remesh/schema/stages.hpp"
#include "remesh/schema/tensor.hpp"

namespace remesh {

/// Which placement a tensor has, and which layer and which of its layer's experts it belongs to
/// (-1: none).
struct Placed {
  std::uint32_t placement = 0;
  std::int32_t layer = -1;
  std::int32_t expert = -1;

  friend bool operator==(const Placed&, const Placed&) = default;
};

/// A mesh, and how each tensor of a checkpoint lies over it. Placements are few; tensors refer to
/// them by number. Tensors are numbered as in the Catalog that holds the layout. Pieces works out
/// which rank holds what.
class Layout {
 public:
  /// One rank that holds everything.
  Layout() = default;

  /// Everything replicated on each rank of `mesh`.
  static Layout replicated(Mesh mesh, std::size_t num_tensors);

  /// `stages` is empty where the model has no layers, otherwise it has one entry for each
  /// coordinate of pp and each virtual stage. Throws Error(invalid_argument) if a number is out of
  /// range, stages do not fit the mesh, a placement is divided over an axis twice or over axes of
  /// both grids, or a tensor that is placed by its layer or its expert has none.
  Layout(Mesh mesh, std::vector<Placement> placements, std::vector<Placed> placed, Stages stages);

  const Mesh& mesh() const noexcept { return mesh_; }
  const Stages& stages() const noexcept { return stages_; }
  std::span<const Placement> placements() const noexcept { return placements_; }
  std::span<const Placed> placed() const noexcept { return placed_; }
  const Placement& placement(std::size_t tensor) const;

  /// The same placements on another mesh. Layers are dealt as `stages` says; without it they stay
  /// as they are if the new mesh has as many stages, and are dealt by even_stages if not. Throws
  /// Error(invalid_argument) as StageRule::deal and the constructor do, and where the mesh cannot
  /// divide the groups of a placement (with the nearest values that would do for all placements);
  /// Error(unsupported) if an axis of `mesh` other than dp, cp and edp is larger than 1 but no
  /// placement uses it.
  Layout on(Mesh mesh, const std::optional<StageRule>& stages = {}) const;

  friend bool operator==(const Layout&, const Layout&) = default;

 private:
  Mesh mesh_;
  std::vector<Placement> placements_;
  std::vector<Placed> placed_;
  Stages stages_;
};

/// A size that the mesh does not divide, and how it is split: "vocabulary 515 over tp 4: 129, 129,
/// 129, 128". Found by looking at each distinct placement and extent; layers over pp included.
std::vector<std::string> uneven_splits(const Layout& layout, std::span<const TensorDesc> tensors);

}  // namespace remesh
