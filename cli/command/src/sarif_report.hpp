#pragma once

#include <string>
#include <string_view>

#include "failure.hpp"
#include "json_parts.hpp"
#include "judgement.hpp"

namespace remesh {

/// A judgement as SARIF 2.1.0: a rule for each explain page, a result for each finding, ignored
/// ones with a suppression. At most 25,000 results, the gravest first, which is what GitHub takes;
/// the rest is counted in a notification.
Json sarif_report(const Judgement& judgement);

/// Where there is no verdict: a run that was not successful, with the reason as a notification of
/// its tool, and no results.
Json sarif_report(const NoVerdict& none);

/// Where a file of a checkpoint lies, as a URI: relative to the working directory, or with the
/// scheme file: where it is not beneath that. `file` empty: the checkpoint itself.
std::string artifact_uri(const std::string& checkpoint, const std::string& file);

}  // namespace remesh
