#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cast_tally.hpp"
#include "named_source.hpp"
#include "remesh/store/tally.hpp"

namespace remesh::detail {

/// The three figures of each tensor, compared. It exists only if they agree: S from the source as
/// it was read (after the cast, where the dtype changes), T from the target as it was written, M as
/// the source had recorded it; each with the proof that every element passed exactly once.
class Proof {
 public:
  /// What passed: `sent` and `cast` count over the source's extents, `arrived` over the target's,
  /// as they were parsed back from its files.
  struct Passed {
    const Tally& sent;
    const CastTally& cast;
    const Tally& arrived;
  };

  /// Throws as transfer() documents. The arguments outlive the proof.
  Proof(const NamedSource& source, const Catalog& target, const ExtentMap& target_map,
        std::span<const std::size_t> source_of, const Passed& passed);

  /// S = T of each tensor, in the target's order.
  std::span<const Digest> digests() const noexcept { return digests_; }
  /// S before any cast, in the target's order.
  std::span<const Digest> source_digests() const noexcept { return source_digests_; }
  /// The CRCs of all blocks of the target, extent by extent.
  std::span<const Digest> block_crcs() const noexcept { return block_crcs_; }
  /// How many tensors had a recorded digest.
  std::int64_t recorded() const noexcept { return recorded_; }
  std::int64_t target_bytes() const noexcept { return target_bytes_; }

  /// That the completed files place every frame where it was written. Throws Error(internal).
  void check_frames(const ExtentMap& sealed, const Tally& arrived) const;

  /// Compares a second reading of the target's files with the first. Throws Error(io, RM207),
  /// naming tensor, file and bytes.
  void check_read_back(const Tally& again) const;

 private:
  Digest source_digest(const NamedSource& source, std::size_t tensor, const Tally& sent);
  void check_target(std::size_t tensor, Digest wanted, const Tally& arrived) const;
  void take_blocks(const Tally& arrived);
  void check_copies() const;

  const Catalog& target_;
  const ExtentMap& map_;
  std::vector<Digest> digests_;
  std::vector<Digest> source_digests_;
  std::vector<Digest> block_crcs_;
  std::vector<std::size_t> first_block_;  ///< of each extent of the map
  std::int64_t recorded_ = 0;
  std::int64_t target_bytes_ = 0;
};

}  // namespace remesh::detail
