#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "remesh/core/burst.hpp"
#include "remesh/store/file_system.hpp"
#include "repair_shard.hpp"

namespace remesh::native {

/// A block of payload: block `k` of extent `extent` of shard `shard`.
struct BlockId {
  std::uint32_t shard = 0;
  std::uint32_t extent = 0;
  std::int64_t k = 0;

  friend bool operator==(const BlockId&, const BlockId&) = default;
};

/// The payload blocks of all shards, and where else each of them is stored. Reading is thread-safe.
class RepairBlocks {
 public:
  /// Both must outlive this. The shards' indexes may be added to until learn().
  RepairBlocks(const FileSystem& files, const std::vector<ShardState>& shards)
      : files_(files), shards_(shards) {}

  /// Takes note of which boxes the shards store, as far as they have an index. Not thread-safe.
  void learn();

  /// The same block in other shards, or in other copies of the same shard.
  std::vector<BlockId> elsewhere(std::uint32_t tensor, const Box& box, std::uint32_t shard,
                                 std::uint32_t copy, std::int64_t k) const;

  /// Bytes as they lie in the file of a shard; false if they are not there.
  bool read(std::uint32_t shard, BlockPlace place, std::span<std::byte> into) const;

  struct Found {
    BlockId from;
    std::optional<Burst> undone = std::nullopt;
  };
  /// Fills `into` with the block as recorded: as it lies there, or in another copy; otherwise with
  /// a burst undone, in the same order. Nothing if none of these has the recorded CRC.
  std::optional<Found> fetch(const BlockId& block, std::span<std::byte> into) const;

  const Extent& extent(const BlockId& block) const noexcept {
    return shards_[block.shard].extents[block.extent];
  }
  BlockPlace place(const BlockId& block) const {
    return place_of_block(*shards_[block.shard].index, extent(block), block.k);
  }
  /// Precondition: its extent is in chunks.
  const Frame& frame(const BlockId& block) const {
    const auto number = static_cast<std::size_t>(extent(block).first_frame + block.k);
    return shards_[block.shard].index->frames[number];
  }
  Digest recorded(const BlockId& block) const {
    return recorded_crc(shards_[block.shard], extent(block), block.k);
  }

 private:
  using Place = std::pair<std::uint32_t, std::uint32_t>;  // shard, extent

  std::shared_ptr<File> open(std::uint32_t shard) const;
  const Extent& extent(const Place& place) const noexcept {
    return shards_[place.first].extents[place.second];
  }

  const FileSystem& files_;
  const std::vector<ShardState>& shards_;
  std::vector<Place> by_box_;
  mutable std::mutex mutex_;
  mutable std::list<std::pair<std::uint32_t, std::shared_ptr<File>>> open_;
};

}  // namespace remesh::native
