#include "frame_writer.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/error.hpp"
#include "remesh/store/chunks.hpp"
#include "remesh/store/reader.hpp"
#include "remesh/store/writer.hpp"
#include "shard_hdf5.hpp"

namespace remesh::native {

FrameWriter::FrameWriter(int level, const std::vector<Series>& series, OpenFile open)
    : level_(level), open_(std::move(open)) {
  std::int64_t count = 0;
  for (const Series& each : series) {
    count = std::max(count, each.last);
    appending_.push_back({each, each.first, {}});
  }
  frames_.resize(static_cast<std::size_t>(count));
}

void FrameWriter::write(std::span<const std::byte> chunk, std::size_t element_bytes,
                        std::span<const std::int64_t> numbers, const Tap& tap) {
  std::unique_ptr<Encoder> encoder = take_encoder();
  const EncodedChunk encoded = encoder->encode(chunk, element_bytes);
  for (const std::int64_t number : numbers) append(number, encoded, tap);
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(encoder));
}

std::unique_ptr<Encoder> FrameWriter::take_encoder() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<Encoder>(level_);
  auto encoder = std::move(idle_.back());
  idle_.pop_back();
  return encoder;
}

// Writes this frame if it is its turn, and then those that waited for it; otherwise keeps it.
// Places are given under the lock, in turn; the bytes are written without.
void FrameWriter::append(std::int64_t number, const EncodedChunk& encoded, const Tap& tap) {
  const auto found = std::ranges::find_if(appending_, [&](const Appending& each) {
    return each.series.first <= number && number < each.series.last;
  });
  Appending& to = *found;
  {
    const std::lock_guard lock(mutex_);
    if (number != to.next) {
      to.waiting[number] = {{encoded.bytes.begin(), encoded.bytes.end()}, encoded.raw, tap};
      return;
    }
  }
  // Nobody else can have its turn before `next` moves on.
  put(to, number, encoded.bytes, encoded.raw, tap);
  for (;;) {
    Waiting next;
    std::int64_t its_number = 0;
    {
      const std::lock_guard lock(mutex_);
      its_number = ++to.next;
      const auto waiting = to.waiting.find(its_number);
      if (waiting == to.waiting.end()) return;
      next = std::move(waiting->second);
      to.waiting.erase(waiting);
    }
    put(to, its_number, next.bytes, next.raw, next.tap);
  }
}

void FrameWriter::put(Appending& to, std::int64_t number, std::span<const std::byte> bytes,
                      bool raw, const Tap& tap) {
  Frame frame{next_offset(to.series.end_bytes, std::ssize(bytes)),
              static_cast<std::int32_t>(bytes.size()), raw};
  to.series.end_bytes = frame.offset_bytes + frame.length_bytes;
  open_(to.series.file)->write_at(frame.offset_bytes, bytes);
  frames_[static_cast<std::size_t>(number)] = frame;
  if (tap) tap.frame(number, frame, digest_of(bytes));
}

std::span<const Frame> FrameWriter::frames() const {
  for (const Appending& each : appending_) {
    if (each.next == each.series.last) continue;
    throw Error(Errc::internal,
                fmt::format("frame {} of file {} was not written; this is a bug in remesh",
                            each.next, each.series.file));
  }
  return frames_;
}

}  // namespace remesh::native

namespace remesh {

std::int64_t compressing_bytes(int level, int workers) {
  return workers * (native::Encoder::needed_bytes(level, most_chunk_bytes) + most_chunk_bytes);
}

std::int64_t unpacking_bytes(int workers) {
  return Reader::default_kept_bytes +
         workers * (native::Decoder::needed_bytes(most_chunk_bytes) + 2 * most_chunk_bytes);
}

}  // namespace remesh
