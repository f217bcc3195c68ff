#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "remesh/schema/mesh.hpp"
#include "remesh/schema/placement.hpp"
#include "remesh/schema/tensor.hpp"

namespace remesh {

/// How the layers of a model are dealt to pipeline stages: layers[s] consecutive layers on stage s.
struct Stages {
  std::vector<Index> layers;

  Index num_layers() const noexcept;
  /// The stage that has `layer`. Throws Error(invalid_argument) if none has.
  Index stage_of(Index layer) const;

  friend bool operator==(const Stages&, const Stages&) = default;
};

/// `num_layers` over `num_stages`, as even as can be, the first stages larger by one.
/// Throws Error(invalid_argument), naming both numbers, if there are more stages than layers.
Stages even_stages(Index num_layers, Index num_stages);

/// Which placement a tensor has, and which layer it belongs to (-1: none).
struct Placed {
  std::uint32_t placement = 0;
  std::int32_t layer = -1;

  friend bool operator==(const Placed&, const Placed&) = default;
};

/// A distinct part of a tensor and all ranks that hold it, ascending.
struct HeldBox {
  Box box;
  std::vector<Rank> holders;

  friend bool operator==(const HeldBox&, const HeldBox&) = default;
};

/// A mesh, and how each tensor of a checkpoint lies over it. Placements are few; tensors refer to
/// them by number. Tensors are numbered as in the Catalog that holds the layout.
class Layout {
 public:
  /// One rank that holds everything.
  Layout() = default;

  /// Everything replicated on each rank of `mesh`.
  static Layout replicated(Mesh mesh, std::size_t num_tensors);

  /// `stages` is empty where the model has no layers, otherwise it has one entry for each
  /// coordinate of pp. Throws Error(invalid_argument) if a number is out of range, stages do not
  /// fit the mesh, or a split names an axis twice.
  Layout(Mesh mesh, std::vector<Placement> placements, std::vector<Placed> placed, Stages stages);

  const Mesh& mesh() const noexcept { return mesh_; }
  const Stages& stages() const noexcept { return stages_; }
  std::span<const Placement> placements() const noexcept { return placements_; }
  std::span<const Placed> placed() const noexcept { return placed_; }
  const Placement& placement(std::size_t tensor) const;

  /// The box of `tensor` that `rank` holds; nothing where it holds none of it. An empty box is
  /// held. Throws as split_range does; the message names the tensor.
  std::optional<Box> box(std::size_t tensor, const TensorDesc& desc, Rank rank) const;

  /// The distinct boxes of a tensor, ordered, with their holders. Empty boxes are left out, unless
  /// the tensor itself has no elements: then its one box, the extent, is there.
  std::vector<HeldBox> boxes(std::size_t tensor, const TensorDesc& desc) const;

  /// The same as one piece for each rank and box.
  std::vector<Piece> pieces(std::size_t tensor, const TensorDesc& desc) const;

  /// The same placements on another mesh; layers are dealt anew by even_stages.
  /// Throws Error(invalid_argument) as even_stages does, and where the mesh cannot divide the
  /// groups of a placement (with the nearest values that would do for all placements);
  /// Error(unsupported) if an axis of `mesh` other than dp and cp is larger than 1 but no placement
  /// uses it.
  Layout on(Mesh mesh) const;

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
