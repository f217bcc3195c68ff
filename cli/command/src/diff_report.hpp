#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "json_parts.hpp"
#include "output.hpp"
#include "remesh/store/reader.hpp"
#include "remesh/verify/diff.hpp"

namespace remesh {

/// One side of a comparison.
struct DiffSide {
  std::string path;  ///< as it was given
  const Reader& reader;
};

/// What was compared, and how it came out.
struct Differences {
  DiffSide left;
  DiffSide right;
  Tolerance tolerance;
  Diff diff;
  double seconds = 0;
  std::string next_step;    ///< what tells more of tensors that differ; empty where none does
  std::size_t ignored = 0;  ///< differences that are ignored
  bool failed = false;      ///< whether one is left, or nothing could be compared
};

/// "equal"; "within" the tolerance; "ignored", all that differs; "different", where it failed.
std::string_view status_of(const Differences& differences);

/// `most`: how many tensors are listed; the others are counted.
void print_differences(const Differences& differences, std::size_t most, Output& out);
Json differences_json(const Differences& differences, std::size_t most);

}  // namespace remesh
