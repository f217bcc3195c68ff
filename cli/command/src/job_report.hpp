#pragma once

#include <optional>
#include <string>

#include "job.hpp"
#include "output.hpp"
#include "remesh/execute/machine_rates.hpp"
#include "remesh/execute/replicas.hpp"

namespace remesh {

/// A job that was done, as it is told.
struct JobResult {
  const Job& job;
  const Left& left;
  std::string source;  ///< the paths as they were given
  std::string destination;
  const Outcome& outcome;
  double seconds = 0;
  std::optional<Prediction> prediction;             ///< with --io
  std::string compress;                             ///< the codec, or empty
  std::int64_t copies = 1;                          ///< as they were asked for
  std::int64_t below_copies = 0;                    ///< pieces that have fewer
  const std::optional<ComparedReplicas>& replicas;  ///< where they were asked for
  std::optional<std::int64_t> resumed_bytes;        ///< of --resume: what needed no writing
};

/// Both meshes, what opening found, what is left out, and what becomes of the side files.
void begin_job_report(const Job& job, const Wanted& wanted, Output& out);

/// What was done and proved; the last line is the path that was written.
void end_job_report(const JobResult& result, Output& out);

}  // namespace remesh
