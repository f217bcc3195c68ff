#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "chunk_codec.hpp"
#include "remesh/store/extents.hpp"
#include "remesh/store/file_system.hpp"
#include "remesh/store/reader.hpp"

namespace remesh::native {

/// Compresses chunks and appends their frames to files: in each file in the order of their numbers,
/// whoever brings them and when, so that the bytes depend on nothing else. A frame that comes
/// before its turn is kept until then. Thread-safe.
class FrameWriter {
 public:
  /// Where the frames of one file go: those numbered [first, last), the first one behind `end`.
  struct Series {
    std::uint32_t file = 0;
    std::int64_t first = 0;
    std::int64_t last = 0;
    std::int64_t end_bytes = 0;
  };

  using OpenFile = std::function<std::shared_ptr<File>(std::uint32_t file)>;

  FrameWriter(int level, const std::vector<Series>& series, OpenFile open);

  /// Compresses `chunk`, a whole one, and appends it as each of the frames `numbers`, which lie in
  /// different files. `tap` hears of each once it is written, from this call or a later one, until
  /// all frames are.
  void write(std::span<const std::byte> chunk, std::size_t element_bytes,
             std::span<const std::int64_t> numbers, const Tap& tap);

  /// Where all frames lie, by number. Throws Error(internal) if some were not written.
  std::span<const Frame> frames() const;

 private:
  struct Waiting {
    std::vector<std::byte> bytes;
    bool raw = false;
    Tap tap;
  };
  struct Appending {
    Series series;
    std::int64_t next = 0;
    std::map<std::int64_t, Waiting> waiting;
  };

  std::unique_ptr<Encoder> take_encoder();
  void append(std::int64_t number, const EncodedChunk& encoded, const Tap& tap);
  void put(Appending& to, std::int64_t number, std::span<const std::byte> bytes, bool raw,
           const Tap& tap);

  const int level_;
  const OpenFile open_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Encoder>> idle_;
  std::vector<Appending> appending_;
  std::vector<Frame> frames_;
};

}  // namespace remesh::native
