#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "manifest.hpp"
#include "remesh/store/file_system.hpp"
#include "remesh/store/repair.hpp"
#include "shard_format.hpp"

namespace remesh::native {

/// Bytes that take the place of what a file has.
struct Patch {
  std::int64_t offset_bytes = 0;
  std::vector<std::byte> bytes;
};

/// Puts what the patches say over bytes that were read from `offset` on.
void overlay(std::span<const Patch> patches, std::int64_t offset, std::span<std::byte> bytes);

/// What is known of one shard that the manifest lists.
struct ShardState {
  ShardEntry entry;
  std::string name;
  FileSystem::Path path;          ///< where it is read
  std::int64_t found_bytes = -1;  ///< its size, or -1 if it is not there
  /// Header and index as they were written: the manifest's CRC of the one binds the other. Nothing
  /// where they are lost. `extents` are those of the index, with the manifest's tensor numbers.
  std::optional<ShardHeader> header = std::nullopt;
  std::optional<ShardIndex> index = std::nullopt;
  std::vector<Extent> extents = {};
  std::vector<Patch> patches = {};  ///< header, index and metadata, mended
  std::vector<Mend> mends = {};
  std::string why_remake = {};  ///< why more than payload is lost; empty if it is not
  const char* id = "RM207";     ///< of that
  bool remade = false;          ///< it was made again, but for its payload

  bool wants_remake() const noexcept { return !why_remake.empty() && !remade; }
  void take_index(ShardIndex taken);
};

/// A block of payload, by its place in the index of its shard.
struct BlockPlace {
  std::int64_t offset_bytes = 0;
  std::int64_t length_bytes = 0;
};
BlockPlace place_of_block(const ShardIndex& index, const Extent& extent, std::int64_t k);
Digest recorded_crc(const ShardState& shard, const Extent& extent, std::int64_t k);

/// Reads header, index and complement of a shard, and mends what a burst explains. Throws what the
/// file system throws, but for what a damaged medium may be the cause of.
ShardState examine_shard(const FileSystem& files, const FileSystem::Path& root,
                         const ShardEntry& entry, Index ranks);

}  // namespace remesh::native
