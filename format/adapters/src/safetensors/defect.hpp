#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/core/error.hpp"
#include "remesh/schema/finding.hpp"

namespace remesh::safetensors {

/// A finding about a file, while it is not told yet.
struct Defect : Finding {
  /// With which a strict reader refuses it, where that is not errc_of's: a file may be more than
  /// this build can do, and not corrupt.
  std::optional<Errc> code;
};

/// A defect of severity error whose message is `what`, with neither "cannot read FILE: " before it
/// nor `next_step` behind it: report() adds both.
Defect defect(std::string id, std::string what, std::string next_step = {});

/// Tells `findings` of a defect of `file`: "cannot read 'FILE': WHAT; NEXT STEP".
void report(Findings& findings, std::string_view file, Defect defect);

/// What is wrong with a file of that size and beginning if it has no content of its own (RM201): it
/// is empty, or a git-lfs pointer.
std::optional<Defect> no_content(std::string_view begin, std::int64_t file_bytes);

/// What an Error says, as a finding about `file`. One without an id gets the one for its code.
Finding as_finding(const Error& error, std::string_view file);

/// A name from a file, fit for a message: control characters replaced, long ones cut.
std::string shown(std::string_view name);

/// "a, b, c and 12 more".
std::string listed(const std::vector<std::string>& names);

}  // namespace remesh::safetensors
