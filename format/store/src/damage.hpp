#pragma once

#include <string>

#include "remesh/core/error.hpp"
#include "remesh/schema/finding.hpp"

namespace remesh::native {

/// Throws what a parser found wrong: an Error with the finding's id, and the code that goes with
/// it.
[[noreturn]] inline void damaged(const std::string& what, const char* id = "RM207") {
  Finding finding;
  finding.id = id;
  throw Error(errc_of(finding), what, id);
}

}  // namespace remesh::native
