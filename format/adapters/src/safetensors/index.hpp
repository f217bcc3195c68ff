#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "remesh/schema/finding.hpp"

/// @file
/// model.safetensors.index.json, and the same of an optimizer: which tensor is in which file.

namespace remesh::safetensors {

inline constexpr std::string_view index_name = "model.safetensors.index.json";
inline constexpr std::string_view optimizer_index_name = "optimizer.safetensors.index.json";

/// Tensor and file.
using WeightMap = std::vector<std::pair<std::string, std::string>>;

struct WeightIndex {
  WeightMap weight_map;                    ///< in the order of the text; names are unique
  std::vector<std::string> files;          ///< those that occur, each once, sorted
  std::optional<std::int64_t> total_size;  ///< where it is recorded; -1 if that is no count
};

/// Parses and checks an index. File names are plain path components (else RM603). Nothing, and a
/// finding about `file`, if it is not what README.md says.
std::optional<WeightIndex> parse_index(std::string_view text, std::string_view file,
                                       Findings& findings);

/// An index as transformers writes it: two spaces, sorted keys, ASCII, a final newline. Its
/// metadata is that of `source_text`, an index that parse_index accepts, or nothing if that is
/// empty; total_size is replaced.
std::string index_text(const WeightMap& weight_map, std::int64_t total_size,
                       std::string_view source_text);

}  // namespace remesh::safetensors
