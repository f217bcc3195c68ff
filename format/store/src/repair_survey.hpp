#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/schema/tensor.hpp"
#include "repair_layout.hpp"
#include "repair_shard.hpp"

namespace remesh::native {

/// What the name of a shard says.
struct ShardPlace {
  Rank rank = 0;
  Index ranks = 1;
};

/// The inverse of shard_name().
std::optional<ShardPlace> parse_shard_name(std::string_view name);

/// 32 hexadecimal digits.
std::string text_of(const SaveId& id);

/// What the shards of a directory say of themselves, where nothing else does.
struct Survey {
  std::vector<ShardState> shards;  ///< ascending by rank, each with header and index
  Index ranks = 0;
  SaveId save_id{};
  std::vector<TensorDesc> tensors;
  std::vector<std::vector<StoredBox>> stored;  ///< for each tensor, as derive_layout() wants it
};

/// Reads all shards under `root`, by their own CRCs, with what a burst did to header, index and
/// metadata undone. Nothing, and findings in `lost`, unless all are whole, of one save and of as
/// many ranks, and hold every tensor: what is missing then nobody can tell. Throws as
/// examine_shard().
std::optional<Survey> survey_shards(const FileSystem& files, const FileSystem::Path& root,
                                    std::vector<Finding>& lost);

}  // namespace remesh::native
