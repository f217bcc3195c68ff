#pragma once

#include <optional>
#include <string>

#include "job.hpp"
#include "json_parts.hpp"
#include "remesh/execute/machine_rates.hpp"
#include "remesh/execute/peak.hpp"
#include "remesh/plan/summary.hpp"

namespace remesh {

/// What a job is going to hold at most, and what it may.
struct Memory {
  PeakMemory need;
  std::int64_t limit = 0;
};

/// Throws Error(out_of_memory, RM705), which says the least `--memory` that would do, if the job
/// needs more than it may hold.
Memory memory_of(const Job& job, const Catalog& wanted, const JobOptions& options);

/// How long the job should take; nothing without --io. Throws as read_rates does.
std::optional<Prediction> prediction_of(const JobOptions& options, const PlanSummary& plan,
                                        std::int64_t pieces, const FileSystem& files);

/// "9.10 s if the system has the source in memory, 14.0 s if not".
std::string to_string(const Prediction& prediction);

/// {"cached": 9.1, "cold": 14.0}, or null.
Json json_of(const std::optional<Prediction>& prediction);

}  // namespace remesh
