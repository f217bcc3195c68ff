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

/// "shard-00001-of-00004.h5 bytes [4096, 8192), 'model.norm.weight' [0, 64)"; empty if nowhere.
std::string place_of(const Finding& finding);

/// "found X, expected Y"; empty where the message says both already.
std::string found_and_expected(const Finding& finding);

/// All of a finding in plain lines, the first of which is not indented: for reports.
std::string finding_lines(const Finding& finding);

/// "2 errors, 1 warning", "1 note".
std::string count_line(std::span<const Finding> findings);

}  // namespace remesh
