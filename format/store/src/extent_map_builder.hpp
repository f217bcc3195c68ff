#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shard_format.hpp"

namespace remesh::native {

/// Puts the extents of a checkpoint's shards together: from a shard's own numbers of tensors,
/// blocks and files to those of the whole.
class ExtentMapBuilder {
 public:
  /// Returns the file's number.
  std::uint32_t add_file(std::string name, std::int64_t size_bytes);

  /// Block CRCs count only if the shard is sealed.
  void add_shard(std::uint32_t file, const ShardHeader& header, ShardIndex index);

  void add_guard(Guard guard) { guards_.push_back(std::move(guard)); }

  ExtentMap take();

 private:
  std::vector<ExtentMap::FileEntry> files_;
  std::vector<Extent> extents_;
  std::vector<Digest> block_crcs_;
  std::vector<Guard> guards_;
  std::vector<Frame> frames_;
};

}  // namespace remesh::native
