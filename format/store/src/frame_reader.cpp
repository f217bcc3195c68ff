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
    const std::lock_guard lock(mutex_);
    if (const auto found = kept_.find(number); found != kept_.end()) {
      recent_.splice(recent_.begin(), recent_, found->second);
      return recent_.front().second;
    }
  }
  // Two may both unpack it: better than that all wait for one.
  Chunk chunk = read_chunk(extent, k);
  const std::lock_guard lock(mutex_);
  if (kept_.contains(number)) return chunk;
  recent_.emplace_front(number, chunk);
  kept_[number] = recent_.begin();
  bytes_ += chunk->size_bytes();
  while (bytes_ > kept_bytes) {
    bytes_ -= recent_.back().second->size_bytes();
    kept_.erase(recent_.back().first);
    recent_.pop_back();
  }
  return chunk;
}

FrameReader::Chunk FrameReader::read_chunk(const Extent& extent, std::int64_t k) {
  const Frame& frame = extents_.frames(extent)[as_size(k)];
  Buffer stored(frame.length_bytes);
  read_(extent.file, frame.offset_bytes, stored.bytes());
  if (const auto blocks = extents_.blocks(extent); !blocks.empty()) {
    const Digest found = digest_of(stored.bytes());
    if (found != blocks[as_size(k)]) {
      refuse(extents_, extent, frame,
             fmt::format("they hash to {}, but {} is recorded; the file changed after it was "
                         "written",
                         to_string(found), to_string(blocks[as_size(k)])));
    }
  }
  auto chunk = std::make_shared<Buffer>(whole_chunk_bytes(tensors_[extent.tensor].dtype, extent));
  unpack(extent, k, stored.bytes(), chunk->bytes());
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
