#pragma once

#include "diff_report.hpp"
#include "judgement.hpp"

namespace remesh {

/// What reports say of a comparison: a finding for each tensor that differs beyond the tolerance
/// (RM311), is of another dtype or shape (RM303), or stands on one side alone (RM302, RM310).
Judgement judgement_of(const Differences& differences);

}  // namespace remesh
