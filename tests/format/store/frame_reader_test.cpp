#include "frame_reader.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "extent_reader.hpp"

namespace remesh {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::int64_t piece_bytes = 32;

// A matrix of 4 x 8 bf16 in pieces of 4 x 2, side by side, each one chunk that is stored as it is.
ExtentMap side_by_side() {
  std::vector<Extent> extents;
  std::vector<Frame> frames;
  for (std::int64_t piece = 0; piece < 4; ++piece) {
    Extent extent;
    extent.offset_bytes = piece * piece_bytes / 2;
    extent.length_bytes = piece_bytes / 2;
    extent.box = Box{{0, 4}, {2 * piece, 2 * piece + 2}};
    extent.first_frame = piece;
    extent.chunk_dim = 0;
    extent.chunk_size = 4;
    extents.push_back(extent);
    frames.push_back({extent.offset_bytes, static_cast<std::int32_t>(piece_bytes / 2), true});
  }
  return {{{"shard", 2 * piece_bytes}}, std::move(extents), {}, {}, std::move(frames)};
}

Catalog one_matrix() {
  Catalog catalog;
  catalog.tensors = {{"w", DType::bf16, Box{{0, 4}, {0, 8}}}};
  return catalog;
}

// A file of 64 bytes 0, 1, 2, ..., in which the first chunk cannot be read before so many others
// were asked for.
class HesitantFile {
 public:
  explicit HesitantFile(std::size_t others) : others_(others) {}

  ByteSource source() {
    return {.read = [this](std::uint32_t, std::int64_t offset,
                           std::span<std::byte> into) { read(offset, into); },
            .side_bytes = {},
            .read_side = {}};
  }

  bool gave_up() const { return gave_up_; }
  std::size_t num_reads() const { return reads_.size(); }

 private:
  void read(std::int64_t offset, std::span<std::byte> into) {
    std::unique_lock lock(mutex_);
    reads_.insert(offset);
    asked_.notify_all();
    const auto enough = [this] { return reads_.size() > others_; };
    if (offset == 0 && !asked_.wait_for(lock, std::chrono::seconds(10), enough)) gave_up_ = true;
    for (std::size_t i = 0; i < into.size(); ++i) {
      into[i] = static_cast<std::byte>(static_cast<std::size_t>(offset) + i);
    }
  }

  const std::size_t others_;
  std::mutex mutex_;
  std::condition_variable asked_;
  std::multiset<std::int64_t> reads_;
  bool gave_up_ = false;
};

// Row-major elements of the matrix, from pieces that are numbered through.
Bytes expected() {
  Bytes bytes;
  bytes.reserve(64);
  for (unsigned row = 0; row < 4; ++row) {
    for (unsigned piece = 0; piece < 4; ++piece) {
      for (unsigned at = 0; at < 4; ++at) {
        bytes.push_back(static_cast<std::byte>(16 * piece + 4 * row + at));
      }
    }
  }
  return bytes;
}

TEST(FrameReader, WhoWantsAChunkThatIsBeingUnpackedTakesTheOthersFirst) {
  HesitantFile file(3);
  const auto reader = make_extent_reader(one_matrix(), side_by_side(), file.source());
  std::vector<Bytes> read(2, Bytes(64));
  std::vector<std::thread> threads;
  for (Bytes& into : read) {
    threads.emplace_back([&] { reader->read(0, Box{{0, 4}, {0, 8}}, into, Tap()); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(file.gave_up()) << "nobody read the other chunks";
  EXPECT_EQ(file.num_reads(), 4u) << "each chunk is unpacked once";
  for (const Bytes& each : read) EXPECT_EQ(each, expected());
}

TEST(FrameReader, KeepsAsManyChunksAsItMay) {
  for (const auto& [kept_chunks, reads] : {std::pair{4, 4}, {3, 16}, {0, 16}}) {
    SCOPED_TRACE(kept_chunks);
    HesitantFile file(0);
    const auto reader = make_extent_reader(one_matrix(), side_by_side(), file.source());
    reader->keep_unpacked(std::int64_t{kept_chunks} << 20);
    Bytes into(16);
    for (Index row = 0; row < 4; ++row) {
      reader->read(0, Box{{row, row + 1}, {0, 8}}, into, Tap());
    }
    EXPECT_EQ(file.num_reads(), static_cast<std::size_t>(reads));
  }
}

}  // namespace
}  // namespace remesh
