#include "frame_reader.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/error.hpp"
#include "remesh/store/chunks.hpp"

namespace remesh {
namespace {

std::size_t as_size(std::int64_t value) { return static_cast<std::size_t>(value); }

[[noreturn]] void refuse(const ExtentMap& extents, const Extent& extent, const Frame& frame,
                         const std::string& why) {
  throw Error(
      Errc::corrupt,
      fmt::format("cannot read bytes [{}, {}) of {}: {}", frame.offset_bytes,
                  frame.offset_bytes + frame.length_bytes, extents.files()[extent.file].name, why),
      "RM207");
}

}  // namespace

FrameReader::Chunk FrameReader::chunk(const Extent& extent, std::int64_t k) {
  const std::int64_t number = extent.first_frame + k;
  {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (Chunk known = find_locked(number)) return known;
      if (under_way_.insert(number).second) break;
      unpacked_.wait(lock);
    }
  }
  return take(extent, k);
}

FrameReader::Chunk FrameReader::chunk_unless_awaited(const Extent& extent, std::int64_t k) {
  const std::int64_t number = extent.first_frame + k;
  {
    const std::lock_guard lock(mutex_);
    if (Chunk known = find_locked(number)) return known;
    if (!under_way_.insert(number).second) return nullptr;
  }
  return take(extent, k);
}

// Precondition: it is under way for nobody else.
FrameReader::Chunk FrameReader::take(const Extent& extent, std::int64_t k) {
  const std::int64_t number = extent.first_frame + k;
  Chunk chunk;
  try {
    chunk = read_chunk(extent, k);
  } catch (...) {
    keep(number, nullptr);  // those who wait see for themselves
    throw;
  }
  keep(number, chunk);
  return chunk;
}

FrameReader::Chunk FrameReader::find_locked(std::int64_t number) {
  const auto found = kept_.find(number);
  if (found == kept_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found->second);
  return recent_.front().second;
}

void FrameReader::keep(std::int64_t number, const Chunk& chunk) {
  const std::lock_guard lock(mutex_);
  under_way_.erase(number);
  unpacked_.notify_all();
  if (!chunk) return;
  recent_.emplace_front(number, chunk);
  kept_[number] = recent_.begin();
  while (std::ssize(recent_) * most_chunk_bytes > most_kept_bytes_) {
    kept_.erase(recent_.back().first);
    recent_.pop_back();
  }
}

std::shared_ptr<Buffer> FrameReader::take_buffer() {
  std::unique_ptr<Buffer> buffer;
  {
    const std::lock_guard lock(pool_->mutex);
    if (!pool_->idle.empty()) {
      buffer = std::move(pool_->idle.back());
      pool_->idle.pop_back();
    }
  }
  if (!buffer) buffer = std::make_unique<Buffer>(most_chunk_bytes);
  return {buffer.release(), [pool = pool_](Buffer* used) {
            const std::lock_guard lock(pool->mutex);
            pool->idle.emplace_back(used);
          }};
}

FrameReader::Chunk FrameReader::read_chunk(const Extent& extent, std::int64_t k) {
  const Frame& frame = extents_.frames(extent)[as_size(k)];
  const std::shared_ptr<Buffer> buffer = take_buffer();
  const auto stored = buffer->bytes().first(as_size(frame.length_bytes));
  read_(extent.file, frame.offset_bytes, stored);
  if (const auto blocks = extents_.blocks(extent); !blocks.empty()) {
    const Digest found = digest_of(stored);
    if (found != blocks[as_size(k)]) {
      refuse(extents_, extent, frame,
             fmt::format("they hash to {}, but {} is recorded; the file changed after it was "
                         "written",
                         to_string(found), to_string(blocks[as_size(k)])));
    }
  }
  std::shared_ptr<Buffer> chunk = take_buffer();
  const std::int64_t whole = whole_chunk_bytes(tensors_[extent.tensor].dtype, extent);
  unpack(extent, k, stored, chunk->bytes().first(as_size(whole)));
  return chunk;
}

void FrameReader::unpack(const Extent& extent, std::int64_t k, std::span<const std::byte> stored,
                         std::span<std::byte> into) {
  const DType dtype = tensors_[extent.tensor].dtype;
  const Frame& frame = extents_.frames(extent)[as_size(k)];
  std::unique_ptr<native::Decoder> decoder = take_decoder();
  try {
    decoder->decode(stored, frame.raw, as_size(bits(dtype) / 8), into);
  } catch (const Error& error) {
    if (error.code() != Errc::corrupt) throw;
    refuse(extents_, extent, frame, error.what());
  }
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(decoder));
  }
  const ByteRange range = chunk_range(dtype, extent, k);
  const auto behind = into.subspan(as_size(range.end - range.begin));
  if (std::ranges::any_of(behind, [](std::byte value) { return value != std::byte{0}; })) {
    refuse(extents_, extent, frame, "it holds other than zeros behind the elements of its chunk");
  }
}

std::unique_ptr<native::Decoder> FrameReader::take_decoder() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<native::Decoder>();
  auto decoder = std::move(idle_.back());
  idle_.pop_back();
  return decoder;
}

}  // namespace remesh
