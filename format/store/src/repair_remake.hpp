#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "remesh/schema/catalog.hpp"
#include "remesh/store/file_system.hpp"
#include "remesh/store/repair.hpp"
#include "repair_blocks.hpp"
#include "repair_shard.hpp"
#include "shard_writer.hpp"

namespace remesh::native {

/// Makes shards again of which more than payload is lost. Which rank stores what, and what a shard
/// is apart from its payload, are functions of the manifest; the CRCs of the blocks come from the
/// indexes of other copies or, where there are none, from the payload as it is; so do the places of
/// frames, unless the shard's own index, which lies where it is planned to, still has them. Whether
/// all of that is right, the CRC of the header says, which binds every byte and is in the manifest.
class Remaker {
 public:
  /// All must outlive this. Shards are made in `directory`.
  Remaker(FileSystem& files, FileSystem::Path directory, const Catalog& catalog,
          std::vector<ShardState>& shards, RepairBlocks& blocks)
      : files_(files),
        directory_(std::move(directory)),
        catalog_(catalog),
        shards_(shards),
        blocks_(blocks) {}

  /// Makes as many as can be, but for their payload, and reports those that cannot.
  void run(RepairReport& report);

 private:
  using Plan = std::vector<ShardDraft>;
  struct Failure {
    std::string why;
    std::vector<Finding> findings = {};
  };

  void find_plans();
  void find_plans(std::int64_t least_copies, bool in_chunks);
  bool agrees(const Plan& plan) const;
  bool make_one_more();
  bool make(std::uint32_t number);
  bool make(std::uint32_t number, ShardDraft draft);
  bool fill(std::uint32_t number, const FileSystem::Path& path, ShardDraft& draft,
            std::vector<Digest>& crcs);
  std::optional<ShardIndex> index_of(const ShardState& shard, const ShardDraft& draft) const;
  bool take_frames(std::uint32_t number, const FileSystem::Path& path, ShardDraft& draft,
                   const std::optional<ShardIndex>& known);
  bool frames_of(std::uint32_t number, const Extent& extent, std::int64_t& end,
                 std::span<Frame> frames) const;
  bool take_crcs(std::uint32_t number, const ShardDraft& draft, std::vector<Digest>& crcs);
  bool crcs_of(std::uint32_t number, const ShardIndex& index, const Extent& extent,
               std::vector<Digest>& crcs);
  Finding not_stored(const ShardState& shard, const ShardTensor& tensor, const Box& box) const;
  bool lose(const ShardState& shard, std::vector<Finding> findings);
  void report_lost(const ShardState& shard, RepairReport& report) const;

  FileSystem& files_;
  const FileSystem::Path directory_;
  const Catalog& catalog_;
  std::vector<ShardState>& shards_;
  RepairBlocks& blocks_;
  std::vector<Plan> plans_;
  std::map<std::string, Failure> failures_;  // by file
};

}  // namespace remesh::native
