#pragma once

#include <cstddef>
#include <optional>
#include <string>

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
};

/// `most`: how many tensors are listed; the others are counted.
void print_differences(const Differences& differences, std::size_t most, Output& out);
Json differences_json(const Differences& differences, std::size_t most);

}  // namespace remesh
