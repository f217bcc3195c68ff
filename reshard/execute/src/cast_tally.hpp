#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "remesh/store/reader.hpp"
#include "remesh/store/tally.hpp"

namespace remesh::detail {

/// What a transfer that changes dtypes should write, recomputed from the bytes as they were read:
/// each run enters with its offset in the source file, is converted by cast_by_the_book(), and is
/// placed by the source's own map. It shares nothing with what panels do. Thread-safe.
class CastTally {
 public:
  /// `source_of` maps the target's tensors to the source's. The arguments outlive the tally.
  CastTally(const Catalog& source, const ExtentMap& extents, const Catalog& target,
            std::span<const std::size_t> source_of);

  /// Whether any tensor changes its dtype.
  bool any() const noexcept { return tensors_ > 0; }
  std::int64_t tensors() const noexcept { return tensors_; }
  /// Values that are not the same after the cast.
  std::int64_t rounded() const noexcept;
  /// The same of one tensor of the target.
  std::int64_t rounded(std::size_t target_tensor) const noexcept {
    return rounded_[target_tensor].load();
  }

  /// Counts bytes that were read; those of tensors that keep their dtype are passed over.
  void add(std::uint32_t file, std::int64_t offset, std::span<const std::byte> bytes);

  /// The same of what was unpacked from a frame of the source.
  void add_unpacked(std::int64_t number, std::int64_t within, std::span<const std::byte> bytes);

  /// What the cast bytes of a tensor of the target come to.
  Tally::Sum sum(std::size_t target_tensor) const { return tally_.sum(target_tensor); }

 private:
  // An extent of the source whose tensor is cast; begin_bytes: of its values in the imagined file.
  struct Scaled {
    std::int64_t begin_bytes = -1;
    DType from{};
    DType to{};
    std::size_t tensor = 0;  // of the target
  };
  static ExtentMap scaled_map(const ExtentMap& extents, const Catalog& target,
                              std::span<const std::size_t> source_of, const Catalog& source,
                              std::vector<Scaled>& scaled);
  void add_values(const Scaled& scaled, std::int64_t offset, std::span<const std::byte> bytes);

  const ExtentMap& extents_;
  std::vector<Scaled> scaled_;  // by the number of the source's extent
  const ExtentMap map_;
  Tally tally_;
  std::int64_t tensors_ = 0;
  std::vector<std::atomic<std::int64_t>> rounded_;  // by the target's tensors
};

}  // namespace remesh::detail
