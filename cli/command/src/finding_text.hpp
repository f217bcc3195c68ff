#pragma once

#include <span>
#include <string>

#include "output.hpp"
#include "remesh/schema/finding.hpp"

namespace remesh {

/// Prints a finding as results are printed (not with --json): severity and id, where, what, found
/// and expected, and what to do next.
void print_finding(const Finding& finding, Output& out);

/// "2 errors, 1 warning", "1 note".
std::string count_line(std::span<const Finding> findings);

}  // namespace remesh
