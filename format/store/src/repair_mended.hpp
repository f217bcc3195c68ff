#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "remesh/schema/catalog.hpp"
#include "remesh/store/forwarding_file_system.hpp"
#include "repair_blocks.hpp"

namespace remesh::native {

/// A file system in which the shards are what they will be once they are mended: for reading,
/// before anything is written.
class MendedFiles final : public ForwardingFileSystem {
 public:
  /// All must outlive this. `mended`: the blocks that are not as recorded.
  MendedFiles(FileSystem& inner, const std::vector<ShardState>& shards, const RepairBlocks& blocks,
              std::span<const BlockId> mended);

  std::unique_ptr<File> open(const Path& path) const override;

 private:
  class MendedFile;

  const std::vector<ShardState>& shards_;
  const RepairBlocks& blocks_;
  std::vector<std::vector<BlockId>> mended_;  // for each shard, by offset
};

/// The digest of each tensor, from the bytes of its first copies. Throws Error(corrupt) if some
/// element is not there once, or a frame is none.
std::vector<Digest> digests_of(const FileSystem& files, const std::vector<ShardState>& shards,
                               std::span<const TensorDesc> tensors, const SweepContext& machine);

}  // namespace remesh::native
