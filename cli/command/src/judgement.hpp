#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ignores.hpp"
#include "remesh/schema/finding.hpp"
#include "remesh/schema/mesh.hpp"
#include "remesh/verify/report.hpp"

/// @file
/// What a command that judges came to, in one value, from which all its reports are made.

namespace remesh {

/// One of what was judged, as far as it could be opened.
struct Side {
  std::string path;  ///< as it was given
  std::string format;
  std::optional<Mesh> mesh;
  bool sealed = false;  ///< whether what it records stands in a seal
  bool opened = false;  ///< whether it was judged at all
  std::map<std::int64_t, std::int64_t> layer_bytes = {};  ///< as bytes_by_layer() has it
  /// As Finding::side has it: "left" or "right", or of the checkpoints of a run its own; empty
  /// where there is but one.
  std::string name = {};
};

/// Checks that belong together: all of a side, or those that compare two.
struct CheckGroup {
  std::string name;  ///< "left: out/ckpt"
  std::string side;  ///< as Side::name; empty: of findings about all sides
  /// The families of findings that were looked for, by their digits: "123" for RM1xx to RM3xx.
  std::string families;
  std::string verdict = {};  ///< of its own, where it is not that of the whole: "not whole"
};

/// What was judged, and what was found.
struct Judgement {
  std::string verb;         ///< "verify"
  std::string title;        ///< what was judged: "out/ckpt", or as title_of() has it
  std::vector<Side> sides;  ///< one; the left and the right one; or a run and its checkpoints
  std::vector<CheckGroup> groups;
  std::vector<Finding> findings;
  Ignored ignored;
  Severity fail_from = Severity::error;
  bool failed = false;
  double seconds = 0;
  /// What a summary says besides, row by row: {"bytes read", "744.0 KiB"}.
  std::vector<std::pair<std::string, std::string>> facts;
  std::vector<TensorNumbers>
      numbers;        ///< of the tensors of the drawn side, where they were counted
  std::string drawn;  ///< the name of the side of which layers are drawn
};

/// The side of which layers are drawn: the first where none is named.
const Side& drawn_side(const Judgement& judgement);

/// The side that a finding is about: the first where it is about all.
const Side& side_of(const Judgement& judgement, const Finding& finding);

/// The number of the group of a finding: the one of its side, or the last.
std::size_t group_of(const Judgement& judgement, const Finding& finding);

/// The findings that count, the gravest first, and of equals by id: causes (files) come before what
/// follows from them (tensors). They point into the judgement.
std::vector<const Finding*> gravest_first(const Judgement& judgement);

/// "out/ckpt against fixtures/llama".
std::string title_of(const Side& left, const Side& right);

/// Whether what a finding is about was opened, and so judged.
bool is_of_opened(const Finding& finding, std::span<const Side> sides);

}  // namespace remesh
