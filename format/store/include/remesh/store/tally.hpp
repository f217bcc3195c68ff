#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "remesh/core/digest.hpp"
#include "remesh/schema/tensor.hpp"
#include "remesh/store/extents.hpp"
#include "remesh/store/reader.hpp"

namespace remesh {

/// Adds up the bytes that pass between memory and the files of one checkpoint.
///
/// Each run enters with the place in its file; the extent map says which elements those are. From
/// that come, for each tensor and copy: the digest of what passed, and whether every element passed
/// exactly once. Nothing here knows what the bytes were meant to be.
///
/// Coverage is proved in O(1) memory: the count of bytes, and the CRC that the same runs would have
/// if every byte were 0xFF, against its closed form for the whole tensor. A hole and a double
/// cancel in neither.
///
/// add() may be called from many threads; the result does not depend on their order.
class Tally {
 public:
  /// Both must outlive the tally. `with_blocks`: keep the CRC of each block of each extent too.
  Tally(std::span<const TensorDesc> tensors, const ExtentMap& extents, bool with_blocks);

  /// Counts bytes that were read from, or written to, [offset, offset + bytes.size()) of a file.
  /// Bytes that belong to no extent are counted in stray_bytes().
  void add(std::uint32_t file, std::int64_t offset, std::span<const std::byte> bytes);

  /// The same of a frame, by what its bytes hash to as they lie in the file. They count for its
  /// block alone.
  void add_frame(std::int64_t number, const Frame& place, Digest digest);

  /// The same of elements that were unpacked from, or packed into, a frame: `within` counts from
  /// the first byte of its chunk.
  void add_unpacked(std::int64_t number, std::int64_t within, std::span<const std::byte> bytes);

  /// Hears for this tally, which must outlive it.
  Tap tap();

  struct Sum {
    Digest digest;           ///< of the tensor's logical bytes, if complete
    std::int64_t bytes = 0;  ///< how many passed
    bool complete = false;   ///< each exactly once

    friend bool operator==(const Sum&, const Sum&) = default;
  };
  Sum sum(std::size_t tensor, std::uint32_t copy = 0) const;

  /// The CRC of block `k` of an extent (its number in the map). Requires `with_blocks`, and that
  /// all bytes of the block were added exactly once.
  Digest block(std::size_t extent, std::int64_t k) const;

  /// Where the frames were that were added; those that were not have no bytes. Requires
  /// `with_blocks`.
  std::span<const Frame> frames() const noexcept { return frames_; }

  std::int64_t bytes() const noexcept { return bytes_.load(); }
  /// Those of frames, as they are stored, and of all else.
  std::int64_t stored_bytes() const noexcept { return stored_.load(); }
  std::int64_t stray_bytes() const noexcept { return stray_.load(); }

 private:
  struct Cell {
    std::atomic<std::uint64_t> crc{0};
    std::atomic<std::uint64_t> cover{0};
    std::atomic<std::int64_t> bytes{0};
  };
  void add_to_extent(const Extent& extent, std::int64_t begin, std::span<const std::byte> bytes);
  void add_sum(const Extent& extent, std::int64_t bytes, std::uint64_t crc, std::uint64_t cover);

  std::span<const TensorDesc> tensors_;
  const ExtentMap& extents_;
  std::vector<std::int64_t> tensor_bytes_;
  std::unique_ptr<Cell[]> cells_;  // [tensor * copies + copy]
  std::vector<std::int64_t> first_block_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> blocks_;
  std::vector<Frame> frames_;
  std::atomic<std::int64_t> bytes_{0};
  std::atomic<std::int64_t> stored_{0};
  std::atomic<std::int64_t> stray_{0};
};

}  // namespace remesh
