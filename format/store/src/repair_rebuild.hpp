#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "remesh/store/sweep.hpp"
#include "repair_blocks.hpp"
#include "repair_documents.hpp"
#include "repair_survey.hpp"

namespace remesh::native {

/// What a manifest is rebuilt from.
struct Remains {
  const FileSystem& files;  ///< in which the shards are whole
  FileSystem::Path root;
  Index ranks = 0;
  SaveId save_id{};
  std::span<const std::vector<StoredBox>> stored;
  std::span<const TensorDesc> tensors;
  std::span<const Digest> digests;  ///< of the tensors, as their bytes are
  const SweepContext& machine;
};

/// Makes a manifest for shards that have none, and puts it into `documents`, with COMMIT and the
/// side files that are there. What the damaged one still says counts where it makes the save id
/// that all shards have; the rest is derived from what they store. Where the save id is another one
/// then, the headers of `shards` are changed to it. What was mended, lost and left out goes to the
/// report; whether it worked is returned.
bool rebuild_manifest(const Remains& remains, std::vector<ShardState>& shards, Documents& documents,
                      RepairReport& report);

}  // namespace remesh::native
