#pragma once

#include <cstdint>

#include "remesh/schema/catalog.hpp"
#include "remesh/store/extents.hpp"

namespace remesh {

/// What a job is going to hold at most, for `plan`: buffers, catalogs, extents, digests, the tables
/// of the library that creates shards, and the program itself. An upper bound, by at most a fifth
/// or 32 MiB, whichever is more, where it was measured (tests/bench/README.md). Where that is more
/// than `limit_bytes` the job would exceed it: only catalogs can do that, since buffers keep to a
/// quarter.
std::int64_t peak_bytes(const Catalog& source, const ExtentMap& stored, const Catalog& wanted,
                        std::int64_t copies, int workers, std::int64_t limit_bytes);

}  // namespace remesh
