#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "remesh/schema/catalog.hpp"

namespace remesh {

/// What a change of layout costs, in bytes; for people and for `plan --json`.
struct PlanSummary {
  Mesh source;
  Mesh target;
  std::int64_t num_tensors = 0;
  std::int64_t payload_bytes = 0;  ///< all tensors once
  std::int64_t read_bytes = 0;     ///< payload that this run reads
  std::int64_t write_bytes = 0;    ///< payload that this run writes (stored copies included)
  std::int64_t wanted_bytes = 0;   ///< what all target ranks hold together, replicas included
  std::int64_t kept_bytes =
      0;  ///< of those: held by the same rank before, so a live job keeps them
  std::int64_t moved_bytes = 0;  ///< of those: a live job moves them from rank to rank
  std::int64_t worker_moved_bytes =
      0;  ///< what this run moves between workers: 0 on one file system
  std::int64_t replicated_tensors =
      0;                            ///< source tensors with several holders, of which one is read
  std::vector<std::string> uneven;  ///< see uneven_splits
  std::vector<std::int64_t> rank_bytes;  ///< what each target rank holds
};

/// Counts what turning `source` into `target` costs. The target has the source's tensors, or some
/// of them, in any order, and where dtypes differ they can be cast; bytes are the target's, but
/// those that are read. Every tensor is planned; equal placements and extents are planned once.
/// Throws as plan_tensor does, and Error(invalid_argument) if the tensors differ.
PlanSummary summarize(const Catalog& source, const Catalog& target, std::int64_t copies);

}  // namespace remesh
