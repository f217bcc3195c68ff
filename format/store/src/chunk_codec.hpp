#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "remesh/core/buffer.hpp"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

/// @file
/// One chunk of a piece, as it lies in a shard: its bytes shuffled as HDF5's filter 2 shuffles
/// them, then one zstd frame (filter 32015) that says how much it holds and has no checksum, since
/// blocks have a CRC. Or, if that would hardly be smaller, the chunk as it is (both filters
/// masked).
///
/// A frame depends on the chunk, the size of its elements, the level and the version of libzstd,
/// and on nothing else: neither on what the encoder did before, nor on who runs it.

namespace remesh::native {

/// The levels of zstd that an Encoder has. From 20 on its windows need memory that a chunk of 1 MiB
/// has no use for.
inline constexpr int least_level = 1;
inline constexpr int most_level = 19;

/// A frame must be smaller than its chunk by so much. Below, a reader would pay with its time for
/// bytes that no one misses; it reads a chunk that is stored as it is at the speed of the medium.
inline constexpr std::size_t least_saving_percent = 3;

/// A chunk to be stored.
struct EncodedChunk {
  /// Valid until the encoder is used again, and if raw, as long as the chunk.
  std::span<const std::byte> bytes;
  bool raw = false;  ///< the chunk itself, neither shuffled nor compressed
};

/// Makes frames of one level. It keeps its memory from chunk to chunk; for one thread at a time.
class Encoder {
 public:
  /// Throws Error(invalid_argument) for a level outside least_level to most_level, and
  /// Error(out_of_memory).
  explicit Encoder(int level);

  /// Precondition: element_bytes >= 1, the size of the dataset's HDF5 type. Throws
  /// Error(out_of_memory).
  EncodedChunk encode(std::span<const std::byte> chunk, std::size_t element_bytes);

  /// What an encoder takes at most, for chunks of up to most_chunk_bytes: for the memory budget.
  /// Throws Error(invalid_argument) as the constructor does.
  static std::int64_t needed_bytes(int level, std::int64_t most_chunk_bytes);

  /// What this one holds now.
  std::int64_t held_bytes() const noexcept;

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const noexcept;
  };

  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
  Buffer shuffled_;
  Buffer frame_;
};

/// Reads what an Encoder of any level has written. It takes every byte for hostile, and keeps its
/// memory from chunk to chunk; for one thread at a time.
class Decoder {
 public:
  /// Throws Error(out_of_memory).
  Decoder();

  /// Fills `into`, which is as long as the chunk must be. `stored` is the chunk itself if `raw`,
  /// and else exactly one frame. No memory is taken and nothing is written before the frame says
  /// that it holds as many bytes as `into`. Throws Error(corrupt, RM207) for anything else, with
  /// both numbers, and then `into` may hold anything; throws Error(out_of_memory).
  /// Preconditions: element_bytes >= 1; the two ranges do not overlap.
  void decode(std::span<const std::byte> stored, bool raw, std::size_t element_bytes,
              std::span<std::byte> into);

  /// What a decoder takes at most, for chunks of up to most_chunk_bytes: for the memory budget.
  static std::int64_t needed_bytes(std::int64_t most_chunk_bytes);

  /// What this one holds now.
  std::int64_t held_bytes() const noexcept;

 private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const noexcept;
  };

  std::unique_ptr<ZSTD_DCtx_s, Free> context_;
  Buffer shuffled_;
};

}  // namespace remesh::native
