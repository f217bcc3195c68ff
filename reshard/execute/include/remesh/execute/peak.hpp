#pragma once

#include <cstdint>

#include "remesh/schema/catalog.hpp"
#include "remesh/store/extents.hpp"
#include "remesh/store/writer.hpp"

namespace remesh {

/// The memory of a job: buffers, catalogs, extents, digests, side files, the tables of the library
/// that creates shards, and the program itself.
struct PeakMemory {
  /// What it is going to hold at most, with the limit that it has. An upper bound, by at most a
  /// fifth or 32 MiB, whichever is more, where it was measured (tests/bench/README.md).
  std::int64_t peak_bytes = 0;
  /// The least limit that would do. With less, buffers of a quarter of the limit and what does not
  /// follow the limit (catalogs above all) exceed it, or no panel fits.
  std::int64_t least_bytes = 0;
  std::int64_t pieces = 0;  ///< that the target stores
};

PeakMemory peak_memory(const Catalog& source, const ExtentMap& stored, const Catalog& wanted,
                       const WriterOptions& options, int workers, std::int64_t limit_bytes);

}  // namespace remesh
