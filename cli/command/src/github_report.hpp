#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "failure.hpp"
#include "judgement.hpp"

/// @file
/// How a judgement is told where GitHub runs us: annotations and the summary of a step.

namespace remesh {

/// Whether `--annotations` means it: "github"; or "auto", where GITHUB_ACTIONS is "true".
bool is_for_github(std::string_view annotations);

/// Workflow commands, one a line, without line feeds: `::error title=RM202 truncated::...`. GitHub
/// shows ten of each severity in a step, so there are no more; then a last line counts them all.
std::vector<std::string> github_annotations(const Judgement& judgement);

/// The one of a run without a verdict.
std::string github_annotation(const NoVerdict& none);

/// The summary in Markdown: facts, and a table of findings, the gravest first. A few hundred KiB at
/// most.
std::string step_summary(const Judgement& judgement);

/// Appends to the file of GITHUB_STEP_SUMMARY, if there is one. Returns false, and appends nothing,
/// where it would become larger than the 1 MiB that GitHub takes. Throws Error(io).
bool append_step_summary(std::string_view text);

}  // namespace remesh
