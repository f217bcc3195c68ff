#pragma once

#include <cstdint>
#include <vector>

#include "remesh/schema/catalog.hpp"
#include "shard_writer.hpp"

namespace remesh::native {

/// Which rank stores what: each distinct box by `copies` of its holders (all, if there are fewer),
/// those with the fewest bytes so far, the lowest rank first. One draft for each rank that stores
/// something, ascending. A function of its arguments alone.
/// Throws as Layout::boxes does, and Error(unsupported) where a box does not end at a whole byte.
/// With `in_chunks`, extents of least_chunked_bytes and more, of whole bytes, are cut into chunks.
std::vector<ShardDraft> plan_storage(const Catalog& catalog, std::int64_t copies,
                                     bool in_chunks = false);

/// Of less, an index of frames would have more bytes than compressing saves.
inline constexpr std::int64_t least_chunked_bytes = 4096;

}  // namespace remesh::native
