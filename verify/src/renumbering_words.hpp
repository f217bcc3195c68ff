#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "remesh/schema/box.hpp"

namespace remesh::detail {

/// Layers, or experts of one layer, that stand under other numbers.
struct Renumbering {
  std::string prefix;            ///< of their names: "model.layers."
  std::map<Index, Index> holds;  ///< a number of the left side, and that of the right one it holds
  std::vector<Index> numbers;    ///< all numbers of the left side, ascending
};

/// "layers 3 and 4 are exchanged".
std::string words_of(const Renumbering& renumbering);

/// `words`, and where: "experts 0 and 1 are exchanged in 'model.layers.0.mlp.experts' and 3 more".
/// The numbers of the outermost axis need no place.
std::string place_and(const std::string& words, std::span<const std::string> prefixes);

/// "'a' and 'b' are exchanged"; "'a' holds what 'b' should, 'b' ...". Each holds what the next one
/// should, the last one what the first one should.
std::string words_of_cycle(std::span<const std::string> names);

}  // namespace remesh::detail
