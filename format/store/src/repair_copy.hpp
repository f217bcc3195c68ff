#pragma once

#include "remesh/store/repair.hpp"
#include "repair_blocks.hpp"
#include "repair_documents.hpp"

namespace remesh::native {

/// Writes a shard as it was into `directory`: what is no payload as it is, with its patches, or
/// where it was made again already, into that file; and each block as fetch() finds it. Syncs it.
void write_shard(FileSystem& files, const FileSystem::Path& directory, std::uint32_t shard,
                 const ShardState& state, const RepairBlocks& blocks, const SweepContext& machine);

/// Writes all but the shards, COMMIT last, and syncs each file.
void write_documents(FileSystem& files, const FileSystem::Path& directory,
                     const Documents& documents);

/// Opens what was written as any reader would, reads all of it again, and compares it with all that
/// is recorded. Throws Error(corrupt, RM207) at the first difference.
void prove(const FileSystem& files, const FileSystem::Path& directory, const Documents& documents,
           const SweepContext& machine);

/// The blocks of a shard, in the order of its file.
std::vector<BlockId> blocks_of(std::uint32_t shard, const ShardState& state);

/// A buffer for one block for each worker of the pool.
class BlockBuffers {
 public:
  explicit BlockBuffers(const SweepContext& machine);
  std::span<std::byte> of(int worker, std::int64_t bytes);

 private:
  MemoryBudget::Reservation held_;
  std::vector<std::vector<std::byte>> buffers_;
};

}  // namespace remesh::native
