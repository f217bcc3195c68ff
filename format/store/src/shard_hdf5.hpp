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

/// How much HDF5 will write beside the content of the datasets: an estimate, a little too large.
std::int64_t estimated_metadata_bytes(const ShardIndex& index);

/// A tensor's name as that of an HDF5 link: what is not a letter, a digit or one of "-_.~@" becomes
/// %XX. A name of dots alone, which HDF5 would take for a path, has those replaced too.
std::string percent_encode(std::string_view name);

}  // namespace remesh::native
