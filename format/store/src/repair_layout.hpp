#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "remesh/schema/layout.hpp"
#include "remesh/schema/tensor.hpp"

namespace remesh::native {

/// A box that a rank stores, whatever copy it is.
struct StoredBox {
  Rank rank = 0;
  Box box;

  friend auto operator<=>(const StoredBox&, const StoredBox&) = default;
};

/// What ranks are taken to hold beyond what they store.
enum class Replicas : std::uint8_t {
  none,    ///< as little as can be said: a rank holds what it stores
  likely,  ///< an axis along which nothing is cut replicates
};

/// A layout on `mesh` that gives each rank the boxes that it stores, each dim cut over whole axes,
/// with a placement for each tensor. Nothing if there is none. `stored`, for each tensor: all boxes
/// that are stored, once for each rank, ascending. O(stored boxes x choices of axes).
struct DerivedLayout {
  Layout layout;
  std::int64_t unstored = 0;  ///< holders, over all tensors, that do not store what they hold
};
std::optional<DerivedLayout> derive_layout(const Mesh& mesh, std::span<const TensorDesc> tensors,
                                           std::span<const std::vector<StoredBox>> stored,
                                           Replicas replicas);

/// The same on the mesh where the fewest hold what they do not store, of those of up to three axes
/// with so many ranks; of these one with few axes. Axes are named as they usually are, tp first.
std::optional<DerivedLayout> derive_layout(Index ranks, std::span<const TensorDesc> tensors,
                                           std::span<const std::vector<StoredBox>> stored);

/// The same layout with each distinct placement once, in the order of the tensors.
Layout sharing_placements(const Layout& layout);

/// The meshes that it looks at.
std::vector<Mesh> meshes_of(Index ranks);

}  // namespace remesh::native
