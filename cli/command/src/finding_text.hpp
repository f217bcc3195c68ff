#pragma once

#include <span>
#include <string>

#include "output.hpp"
#include "remesh/schema/finding.hpp"

namespace remesh {

/// Prints findings as results are printed (not with --json): severity and id, where, what, found
/// and expected, what to do next. They come by id, which puts causes (files) before what follows
/// from them (tensors), and no more than a handful of each, unless -v.
void print_findings(std::span<const Finding> findings, Output& out);

/// "2 errors, 1 warning", "1 note".
std::string count_line(std::span<const Finding> findings);

}  // namespace remesh
