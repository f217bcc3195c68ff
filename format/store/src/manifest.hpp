#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/schema/catalog.hpp"
#include "remesh/store/file_tree.hpp"
#include "shard_format.hpp"

namespace remesh::native {

inline constexpr std::string_view manifest_name = "manifest.json";
inline constexpr std::string_view commit_name = "COMMIT";
inline constexpr std::string_view signature_name = "manifest.json.minisig";
inline constexpr std::string_view side_directory = "side";

/// The most bytes of a manifest that are read.
inline constexpr std::int64_t most_manifest_bytes = std::int64_t{512} << 20;

/// A shard file as the manifest lists it. The CRC of its header binds all of its content.
struct ShardEntry {
  Rank rank = 0;
  std::int64_t size_bytes = 0;
  Digest header_crc;

  friend bool operator==(const ShardEntry&, const ShardEntry&) = default;
};

/// The tree hashes of all files: what a signature over the manifest needs, since CRCs can be
/// forged.
struct Trees {
  std::vector<TreeHash> files;  ///< of Manifest::shards
  std::vector<TreeHash> side;   ///< of Catalog::side

  friend bool operator==(const Trees&, const Trees&) = default;
};

struct Manifest {
  Catalog catalog;
  std::vector<ShardEntry> shards;  ///< ascending by rank
  std::optional<Trees> trees = std::nullopt;
};

/// Canonical JSON: UTF-8, keys sorted, no white space. Precondition: a digest for each tensor.
/// Throws Error(unsupported) if some text is not UTF-8.
std::string to_json(const Manifest& manifest);

/// The inverse. Throws Error with RM102 for another version, RM603 for a side file's name, RM605
/// and RM608 as parse_json does, and RM103 for all else; the message does not name the file.
/// `padding_bytes` is read_json's.
Manifest parse_manifest(std::string_view text, std::size_t padding_bytes = 0);

/// Whether a manifest can hold it: UTF-8.
bool is_text(std::string_view text);

/// What COMMIT holds: one line with digest and size of the manifest's text.
std::string commit_line(std::string_view manifest);

/// 32 hexadecimal digits: BLAKE2b-128 of the tensors (with digests), the layout, the side files and
/// the run id, as canonical JSON. Two saves of the same state into the same layout have the same.
std::string save_id_of(const Catalog& catalog);

/// The same, where the canonical JSON of all tensors is at hand.
std::string save_id_of(const Catalog& catalog, std::string_view tensors);

/// The inverse of writing a save id as text. Precondition: 32 hexadecimal digits.
SaveId parse_save_id(std::string_view text);

/// Hands the canonical JSON of {layout, mesh, run_id, side, tensors} to `sink`, in parts.
void write_identity(const Catalog& catalog, const std::function<void(std::string_view)>& sink);

}  // namespace remesh::native
