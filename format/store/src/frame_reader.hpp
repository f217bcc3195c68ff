#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "chunk_codec.hpp"
#include "remesh/core/buffer.hpp"
#include "remesh/schema/tensor.hpp"
#include "remesh/store/extents.hpp"
#include "remesh/store/reader.hpp"

namespace remesh {

/// Reads compressed chunks: the frame, its CRC, then what it holds. Keeps the last few chunks,
/// since those who read boxes come back for the rest of one; who asks for a chunk that another is
/// just unpacking waits for it. Memory is used again, since new pages cost more than they are
/// worth. Thread-safe.
class FrameReader {
 public:
  using Read = std::function<void(std::uint32_t file, std::int64_t offset, std::span<std::byte>)>;
  using Chunk = std::shared_ptr<const Buffer>;

  /// All must outlive it.
  FrameReader(const ExtentMap& extents, std::span<const TensorDesc> tensors, const Read& read)
      : extents_(extents), tensors_(tensors), read_(read) {}

  /// Keeps at most so many bytes of chunks. Whoever reads holds one more.
  void keep_at_most(std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    most_kept_bytes_ = bytes;
  }

  /// The bytes of chunk k of an extent, a whole one: those that a short one has, and zeros; what
  /// lies behind them in the buffer means nothing. Throws Error(corrupt, RM207), with file and
  /// bytes, if the frame does not have its recorded CRC, does not unpack to a chunk, or has other
  /// than zeros behind it.
  Chunk chunk(const Extent& extent, std::int64_t k);

  /// The same, but nothing where another is just unpacking it.
  Chunk chunk_unless_awaited(const Extent& extent, std::int64_t k);

  /// Unpacks bytes that were read from a frame, and whose CRC was checked. Otherwise as chunk().
  void unpack(const Extent& extent, std::int64_t k, std::span<const std::byte> stored,
              std::span<std::byte> into);

 private:
  // Buffers of one size, of which those that nobody uses wait for the next one.
  struct Pool {
    std::mutex mutex;
    std::vector<std::unique_ptr<Buffer>> idle;
  };

  std::shared_ptr<Buffer> take_buffer();
  Chunk find_locked(std::int64_t number);
  Chunk take(const Extent& extent, std::int64_t k);
  void keep(std::int64_t number, const Chunk& chunk);
  Chunk read_chunk(const Extent& extent, std::int64_t k);
  std::unique_ptr<native::Decoder> take_decoder();

  const ExtentMap& extents_;
  const std::span<const TensorDesc> tensors_;
  const Read& read_;
  std::int64_t most_kept_bytes_ = Reader::default_kept_bytes;
  const std::shared_ptr<Pool> pool_ = std::make_shared<Pool>();
  std::mutex mutex_;
  std::condition_variable unpacked_;
  std::set<std::int64_t> under_way_;
  std::vector<std::unique_ptr<native::Decoder>> idle_;
  std::list<std::pair<std::int64_t, Chunk>> recent_;  // the last one asked for comes first
  std::unordered_map<std::int64_t, decltype(recent_)::iterator> kept_;
};

}  // namespace remesh
