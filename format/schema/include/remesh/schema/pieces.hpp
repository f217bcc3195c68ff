#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "remesh/schema/layout.hpp"
#include "remesh/schema/tensor.hpp"

namespace remesh {

/// A distinct part of a tensor and all ranks that hold it, ascending.
struct HeldBox {
  Box box;
  std::vector<Rank> holders;

  friend bool operator==(const HeldBox&, const HeldBox&) = default;
};

/// Where the parts of a checkpoint's tensors lie: a layout, worked out for its tensors. Nothing
/// here goes through all ranks to answer for one. May be asked by many threads.
class Pieces {
 public:
  /// Both must outlive it. O(tensors) where some are on lines, else O(1).
  Pieces(const Layout& layout, std::span<const TensorDesc> tensors);
  Pieces(const Layout&& layout, std::span<const TensorDesc> tensors) = delete;
  Pieces(Pieces&&) noexcept;
  Pieces& operator=(Pieces&&) noexcept;
  ~Pieces();

  /// What `rank` holds of `tensor`, as disjoint boxes in the order in which that rank has them;
  /// none where it holds nothing of it. A tensor without elements is held as its extent. Throws
  /// Error(invalid_argument) as split_ranges does, or where a split names a dim that the tensor
  /// does not have; the message names the tensor.
  std::vector<Box> on(std::size_t tensor, Rank rank) const;

  /// The distinct boxes of a tensor, ordered and disjoint, with their holders. Where replicas are
  /// cut differently (by lines of different lengths, or where only some have shared groups beside
  /// their own), what they share is a box of its own, and a
  /// rank holds several where on() gives it one. Throws as on(). O(ranks).
  std::vector<HeldBox> of(std::size_t tensor) const;

  /// Whether of() may have cut what on() says.
  bool may_be_cut(std::size_t tensor) const;

 private:
  struct Lines;

  const Layout* layout_;
  std::span<const TensorDesc> tensors_;
  std::unique_ptr<Lines> lines_;
};

}  // namespace remesh
