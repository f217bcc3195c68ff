#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "remesh/store/file_system.hpp"
#include "shard_format.hpp"
#include "shard_hdf5.hpp"

namespace remesh::native {

/// The inverses of the parsers in shard_reader.hpp.
std::vector<std::byte> encode(const ShardHeader& header);
std::vector<std::byte> encode(const ShardIndex& index);

/// A shard while it is being written. Its index has no block CRCs but as many zeros.
struct ShardDraft {
  ShardHeader header;
  ShardIndex index;
  std::optional<FramePlan> frames = std::nullopt;  ///< where some extents are in chunks
};

/// Creates the HDF5 file of a shard, and unsealed header and index in it. In `draft`, the extents
/// come in any order and without places; afterwards it is what the file says.
/// Throws Error(io), with the id of the cause.
void create_shard(FileSystem& files, const FileSystem::Path& path, ShardDraft& draft);

/// What create_shard will make of it, in bytes: an estimate, a little too large.
std::int64_t estimated_bytes(const ShardDraft& draft);

/// Puts the HDF5 view around frames that were appended behind frames_begin, and are those of
/// `frames`, in the order of the draft's. The draft is then what the file will say. Does nothing to
/// a draft without frames. Throws as describe_frames.
void finish_frames(File& file, const FileSystem::Path& path, ShardDraft& draft,
                   std::span<const Frame> frames);

/// Writes the final index, then hashes what is no payload, then writes the header. The payload must
/// be on the medium. Returns the CRC of the header. Does not sync.
Digest seal_shard(File& file, ShardDraft& draft, std::span<const Digest> block_crcs,
                  const SaveId& save_id);

}  // namespace remesh::native
