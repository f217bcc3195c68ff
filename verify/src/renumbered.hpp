#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "remesh/core/digest.hpp"
#include "remesh/schema/finding.hpp"
#include "remesh/schema/tensor.hpp"

namespace remesh::detail {

/// A tensor of both sides, by its numbers in their catalogs.
struct Pair {
  std::size_t left = 0;
  std::size_t right = 0;
};

/// One finding about some tensors of one name, by their numbers in the list of pairs.
struct Explanation {
  Finding finding;
  std::vector<std::size_t> pairs;  ///< ascending, not empty
};

struct Digested {
  std::span<const TensorDesc> tensors;
  std::span<const Digest> digests;
};

/// Finds among tensors that differ those that stand under another name on the other side (RM524),
/// by their digests alone: whole layers and experts under other numbers, and otherwise tensors that
/// changed places with each other. No tensor is in two explanations. `pairs` have one dtype and
/// shape on both sides.
std::vector<Explanation> find_renumbered(const Digested& left, const Digested& right,
                                         std::span<const Pair> pairs);

}  // namespace remesh::detail
