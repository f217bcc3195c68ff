#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ignores.hpp"
#include "remesh/schema/finding.hpp"
#include "remesh/schema/mesh.hpp"

/// @file
/// What a command that judges came to, in one value, from which all its reports are made.

namespace remesh {

/// One side of a judgement, as far as it could be opened.
struct Side {
  std::string path;  ///< as it was given
  std::string format;
  std::optional<Mesh> mesh;
  bool sealed = false;  ///< whether what it records stands in a seal
  bool opened = false;  ///< whether it was judged at all
};

/// What was judged, and what was found.
struct Judgement {
  std::string verb;         ///< "verify"
  std::vector<Side> sides;  ///< one; or the left and the right one
  std::vector<Finding> findings;
  Ignored ignored;
  bool failed = false;
  double seconds = 0;
  /// Families of findings that were looked for: digits, as in "RM2xx".
  std::string families;
  /// What a summary says besides, row by row: {"bytes read", "744.0 KiB"}.
  std::vector<std::pair<std::string, std::string>> facts;
};

/// The name of the side of a finding: "left" or "right" where there are two, otherwise empty.
std::string side_name(const Judgement& judgement, std::size_t side);

}  // namespace remesh
