#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/schema/finding.hpp"
#include "remesh/store/extents.hpp"

/// @file
/// What a shard file of format version 1 is made of: the facts that its writer and its reader
/// share. SPEC.md is the law.

namespace remesh::native {

inline constexpr std::uint32_t format_version = 1;

/// The length of the header block, which is the HDF5 user block.
inline constexpr std::int64_t header_bytes = 4096;

/// Not text (the first byte), and damaged by a transfer that converts line ends (the last).
inline constexpr std::array<unsigned char, 8> magic{0x89, 'R', 'E', 'M', 'E', 'S', 'H', '\n'};

/// Where the fields of the header block start. What no field takes up is zero.
namespace header_field {
inline constexpr std::size_t version = 8;
inline constexpr std::size_t state = 12;
inline constexpr std::size_t file_bytes = 16;
inline constexpr std::size_t index_offset = 24;
inline constexpr std::size_t index_bytes = 32;
inline constexpr std::size_t index_crc = 40;
inline constexpr std::size_t complement_crc = 48;
inline constexpr std::size_t rank = 56;
inline constexpr std::size_t ranks = 60;
inline constexpr std::size_t save_id = 64;
inline constexpr std::size_t end = 80;
inline constexpr std::size_t header_crc = 4088;
}  // namespace header_field

using SaveId = std::array<std::byte, 16>;

/// The header's own CRC, which the manifest repeats: of the bytes before it. (The CRC of the whole
/// block would be the same for every header: a message followed by its own CRC leaves a constant.)
Digest header_crc(std::span<const std::byte> block);

struct ShardHeader {
  bool sealed = false;  ///< before, the CRCs of complement and blocks and the save id are zero
  std::int64_t file_bytes = 0;
  ByteRange index;
  Digest index_crc;
  Digest complement_crc;
  Rank rank = 0;
  Index ranks = 1;
  SaveId save_id{};

  friend bool operator==(const ShardHeader&, const ShardHeader&) = default;
};

/// A tensor that a shard has a part of, whole.
struct ShardTensor {
  std::uint32_t number = 0;  ///< its number in the manifest
  TensorDesc desc;

  friend bool operator==(const ShardTensor&, const ShardTensor&) = default;
};

/// What lies where in one shard. Here, Extent::tensor is a position in `tensors`, and block CRCs
/// and frames are counted from 0. Tensors ascend by number, extents by (offset, tensor, box, copy).
struct ShardIndex {
  std::vector<ShardTensor> tensors;
  std::vector<Extent> extents;
  std::vector<Digest> block_crcs;
  std::vector<Frame> frames;

  friend bool operator==(const ShardIndex&, const ShardIndex&) = default;
};

/// The counts at the start of an index, 8 bytes each.
struct IndexCounts {
  std::uint64_t tensors = 0;
  std::uint64_t extents = 0;
  std::uint64_t blocks = 0;
  std::uint64_t shape_values = 0;  ///< one for each dim of each tensor
  std::uint64_t box_values = 0;    ///< two for each dim of each extent
  std::uint64_t name_bytes = 0;
  std::uint64_t frames = 0;

  friend bool operator==(const IndexCounts&, const IndexCounts&) = default;
};
inline constexpr std::size_t index_counts_bytes = 56;

/// What the index says instead of a dim where an extent is not cut into chunks.
inline constexpr std::uint8_t not_chunked = 255;

/// Limits on what a reader accepts.
inline constexpr std::int64_t most_index_bytes = std::int64_t{1} << 30;
inline constexpr std::size_t most_name_bytes = 4096;
inline constexpr std::size_t most_tensors = 10'000'000;

/// Why a checkpoint of another format version is not read.
std::string version_refusal(std::string_view version);

/// "shard-00003-of-00008.h5"
std::string shard_name(Rank rank, Index ranks);

/// The bytes of a file from `header_bytes` on that no extent and no frame has. Precondition: the
/// extents lie in the file, ascend by offset and do not overlap.
std::vector<ByteRange> complement(std::int64_t file_bytes, const ShardIndex& index);

/// Gives the extents their first_block, one after the other, and those in chunks their first_frame.
/// Returns how many blocks there are.
std::int64_t number_blocks(std::span<Extent> extents);

/// Whether a tensor can be stored: no more than most_name_bytes of name but some, sizes of 0 or
/// more, and bytes that are whole and can be counted. Empty if it can; otherwise why not.
std::string why_not_storable(const TensorDesc& desc);

}  // namespace remesh::native
