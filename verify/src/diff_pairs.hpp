#pragma once

#include <cstddef>
#include <vector>

#include "remesh/schema/catalog.hpp"
#include "remesh/verify/diff.hpp"
#include "renumbered.hpp"

namespace remesh::detail {

/// Which tensors stand on both sides, and which on one, all ordered by their names.
struct Pairing {
  std::vector<Pair> pairs;
  std::vector<std::size_t> only_left;
  std::vector<std::size_t> only_right;
  std::int64_t left_out = 0;  ///< names that the options leave out
};

/// Throws Error(invalid_argument) for a pattern that matches no name of either side.
Pairing pair_up(const Catalog& left, const Catalog& right, const DiffOptions& options);

}  // namespace remesh::detail
