#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "remesh/store/file_system.hpp"
#include "shard_format.hpp"

namespace remesh::native {

/// Creates a shard as libhdf5 sees it: groups, attributes, and a dataset for each extent and for
/// the index, with room but no content. Sets the offset of each extent, and returns that of the
/// index. The same index gives the same bytes. All is written through `files`: throws what they
/// throw, Error(exists) if something is there. What libhdf5 itself refuses is Error(io, RM703),
/// which names the path.
std::int64_t create_hdf5(FileSystem& files, const FileSystem::Path& path, ShardIndex& index,
                         std::int64_t index_bytes);

/// Where things will lie in a shard with extents in chunks. Metadata comes first, then the index,
/// then the extents that are not in chunks, then frames, in the order of datasets and chunks.
struct FramePlan {
  std::int64_t metadata_end = 0;
  std::int64_t index_offset = 0;
  std::int64_t frames_begin = 0;  ///< the first frame lies at next_offset(frames_begin, its length)
};

/// Finds that out by making the metadata once, in the file: with any frames it has the same size.
/// Sorts the extents by (tensor, box, copy), which is the order of datasets, and sets the offset of
/// those that are not in chunks. Costs as much as describe_frames. Precondition: nothing is in the
/// file. `path` is for messages. Throws what the file throws; Error(io, RM703) where libhdf5
/// refuses.
FramePlan plan_frames(File& file, const FileSystem::Path& path, ShardIndex& index,
                      std::int64_t index_bytes);

/// Where `length_bytes` of payload go if the payload before them ends at `end`: at 64 KiB and more
/// to a multiple of 4096, otherwise of 8.
std::int64_t next_offset(std::int64_t end, std::int64_t length_bytes) noexcept;

/// Makes the file HDF5: metadata around frames and payload that are in it, which are neither read
/// nor written. Sorts the extents as plan_frames does. The same index gives the same bytes.
/// Preconditions: the plan is that of this index; `first_frame` of extents in
/// chunks counts in `index.frames`. Throws as plan_frames does, and Error(internal) if libhdf5
/// wants anything anywhere else than planned.
void describe_frames(File& file, const FileSystem::Path& path, ShardIndex& index,
                     std::int64_t index_bytes, const FramePlan& plan);

/// How much HDF5 will write beside the content of the datasets: an estimate, a little too large.
std::int64_t estimated_metadata_bytes(const ShardIndex& index);

/// A tensor's name as that of an HDF5 link: what is not a letter, a digit or one of "-_.~@" becomes
/// %XX. A name of dots alone, which HDF5 would take for a path, has those replaced too.
std::string percent_encode(std::string_view name);

}  // namespace remesh::native
