#pragma once

#include "job.hpp"
#include "job_options.hpp"
#include "session.hpp"

namespace remesh {

/// Says what a job would cost, and does nothing. Returns 1, with the reason, where the mesh is
/// impossible for the model.
int plan_job(const Job& job, const JobOptions& options, Session& session);

}  // namespace remesh
