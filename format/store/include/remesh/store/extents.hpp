#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "remesh/core/digest.hpp"
#include "remesh/schema/finding.hpp"
#include "remesh/schema/tensor.hpp"

/// @file
/// Where a checkpoint's elements lie in its files. It is all that a format has to say: reading,
/// proving and judging are written once, over extents.

namespace remesh {

/// One box of one tensor, packed, in one file. A box without elements has no bytes and no place.
/// Where it is compressed, it is cut into chunks (chunks.hpp), and each lies in a frame of its own.
struct Extent {
  std::uint32_t tensor = 0;       ///< its number in the catalog
  std::uint32_t file = 0;         ///< its number in ExtentMap::files
  Rank rank = 0;                  ///< who holds it; 0 in formats without ranks
  std::uint32_t copy = 0;         ///< which of several stored copies of the same box this is
  std::int64_t offset_bytes = 0;  ///< of its first frame, where there are frames
  std::int64_t length_bytes = 0;  ///< of the packed box, whatever its frames have
  Box box = {};
  /// The first of its block CRCs in ExtentMap::block_crcs, or -1 where none are recorded. Block k
  /// is bytes [k, k + 1) * block_bytes of the extent, the last one shorter; of frames it is the
  /// k-th one, as it lies in the file.
  std::int64_t first_block = -1;
  /// The first of its frames in ExtentMap::frames, or -1 where the bytes lie as they are.
  std::int64_t first_frame = -1;
  int chunk_dim = -1;  ///< the dim that is cut, or -1
  Index chunk_size = 0;

  friend bool operator==(const Extent&, const Extent&) = default;
};

/// One chunk as it lies in a file.
struct Frame {
  std::int64_t offset_bytes = 0;
  std::int32_t length_bytes = 0;
  bool raw = false;  ///< the chunk itself: neither shuffled nor compressed

  friend bool operator==(const Frame&, const Frame&) = default;
};

inline bool is_chunked(const Extent& extent) noexcept { return extent.chunk_dim >= 0; }

/// The number of blocks of an extent: of its frames, where it has some.
std::int64_t num_blocks(const Extent& extent) noexcept;

/// Bytes of a file that are no tensor's, and what they must hash to, taken together in order.
struct Guard {
  std::uint32_t file = 0;
  std::vector<ByteRange> ranges;
  Digest expected;
  std::string what;  ///< "HDF5 metadata, gaps and index", "side file"

  friend bool operator==(const Guard&, const Guard&) = default;
};

/// All extents of a checkpoint.
class ExtentMap {
 public:
  static constexpr std::int64_t block_bytes = std::int64_t{1} << 20;

  struct FileEntry {
    std::string name;  ///< relative to the checkpoint: "side/config.json"
    std::int64_t size_bytes = 0;

    friend bool operator==(const FileEntry&, const FileEntry&) = default;
  };

  ExtentMap() = default;

  /// Sorts the extents by (file, offset, tensor, box, copy).
  ExtentMap(std::vector<FileEntry> files, std::vector<Extent> extents,
            std::vector<Digest> block_crcs = {}, std::vector<Guard> guards = {},
            std::vector<Frame> frames = {});

  std::span<const FileEntry> files() const noexcept { return files_; }
  std::span<const Extent> extents() const noexcept { return extents_; }
  std::span<const Guard> guards() const noexcept { return guards_; }

  /// The extents of one tensor, by (copy, box), as numbers in extents().
  std::span<const std::uint32_t> of(std::size_t tensor) const noexcept;

  /// The recorded CRCs of an extent's blocks; empty where none are recorded.
  std::span<const Digest> blocks(const Extent& extent) const noexcept;

  /// The frames of an extent, in the order of its chunks; empty where it has none.
  std::span<const Frame> frames(const Extent& extent) const noexcept;

  /// The bytes of its file that an extent takes up, gaps between its frames included.
  ByteRange place(const Extent& extent) const noexcept;

  /// The extent that holds byte `offset` of a file, or a gap between its frames; nothing if no
  /// extent does. O(log extents).
  /// Precondition: extents do not overlap (parsers check it).
  const Extent* at(std::uint32_t file, std::int64_t offset) const noexcept;

  /// The larger of 1 and the number of copies of any box.
  std::uint32_t copies() const noexcept { return copies_; }

  /// Whether both say that the same elements lie at the same places; CRCs and guards do not count.
  bool same_places(const ExtentMap& other) const noexcept;

 private:
  std::vector<FileEntry> files_;
  std::vector<Extent> extents_;
  std::vector<Digest> block_crcs_;
  std::vector<Guard> guards_;
  std::vector<Frame> frames_;
  std::vector<std::uint32_t> with_bytes_;
  std::vector<std::uint32_t> by_tensor_;
  std::vector<std::size_t> first_of_tensor_;
  std::uint32_t copies_ = 1;
};

/// The number of blocks of that many bytes.
std::int64_t num_blocks(std::int64_t length_bytes) noexcept;

}  // namespace remesh
