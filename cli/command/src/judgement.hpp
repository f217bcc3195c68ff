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

/// Checks that belong together: all of a side, or those that compare two.
struct CheckGroup {
  std::string name;  ///< "left: out/ckpt"
  std::string side;  ///< that of its findings: "left", "right" or empty
  /// The families of findings that were looked for, by their digits: "123" for RM1xx to RM3xx.
  std::string families;
};

/// What was judged, and what was found.
struct Judgement {
  std::string verb;         ///< "verify"
  std::vector<Side> sides;  ///< one; or the left and the right one
  std::vector<CheckGroup> groups;
  std::vector<Finding> findings;
  Ignored ignored;
  Severity fail_from = Severity::error;
  bool failed = false;
  double seconds = 0;
  /// What a summary says besides, row by row: {"bytes read", "744.0 KiB"}.
  std::vector<std::pair<std::string, std::string>> facts;
};

/// The side that a finding is about: the left one where it is about both.
const Side& side_of(const Judgement& judgement, const Finding& finding);

/// The number of the group of a finding: the one of its side, or the last.
std::size_t group_of(const Judgement& judgement, const Finding& finding);

/// "out/ckpt against fixtures/llama".
std::string title_of(const Judgement& judgement);

}  // namespace remesh
