#pragma once

#include <cstdint>

#include "remesh/plan/summary.hpp"

/// @file
/// How long a job is going to take, from what a machine was seen to do.

namespace remesh {

/// What some bytes took in one way of handling them.
struct StageCost {
  std::int64_t bytes = 0;
  double seconds = 0;            ///< from begin to end, with all workers
  double processor_seconds = 0;  ///< of all threads, the system's work for them included
};

/// What one storage and these cores can do, as `remesh bench io` measures it.
struct MachineRates {
  std::int64_t workers = 1;
  StageCost write;        ///< into new files, with the sync that ends it
  StageCost read_cached;  ///< files that the system has in memory
  StageCost read_cold;    ///< files that it was told to forget
  StageCost hash;         ///< digests of buffers
  StageCost copy;         ///< from buffer to buffer
  std::int64_t pieces = 1;
  double pieces_seconds = 0;  ///< a native checkpoint of so many pieces, almost without payload
};

/// What a job does with a machine.
struct JobCost {
  std::int64_t read_bytes = 0;
  std::int64_t write_bytes = 0;
  std::int64_t pieces = 0;  ///< that a native checkpoint creates
  bool read_back = false;
  std::int64_t workers = 1;
  std::int64_t read_limit = 0;  ///< bytes a second; 0: none
};

/// Seconds that a job should take.
struct Prediction {
  double cached = 0;  ///< if the system has the source in memory
  double cold = 0;    ///< if it comes from the medium
};

/// Every byte that is read is hashed and copied, and every byte that is written is hashed: all of
/// that is work, shared by the workers that there are. The medium works beside them. The job takes
/// the longer of the two, creates its pieces before, and cannot be faster than its read limit.
/// `cold` reads and writes one medium. Precondition: all bytes, seconds and counts of `rates` are
/// positive.
Prediction predict(const JobCost& job, const MachineRates& rates);

}  // namespace remesh
