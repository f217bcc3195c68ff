#pragma once

#include <optional>
#include <string>

#include "json_parts.hpp"
#include "remesh/schema/mesh.hpp"
#include "remesh/verify/report.hpp"
#include "session.hpp"

namespace remesh {

/// One side of a judgement, as far as it could be opened.
struct Side {
  std::string path;  ///< as it was given
  std::string format;
  std::optional<Mesh> mesh;
};

/// What was judged, and how it came out.
struct Verdict {
  Side side;
  std::optional<Side> against;
  Report report;
  bool failed = false;  ///< findings at or above --fail-on, or tensors that differ
  double seconds = 0;
};

void print_verdict(const Verdict& verdict, Output& out);
Json verdict_json(const Verdict& verdict);

}  // namespace remesh
