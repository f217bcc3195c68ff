#include "remesh/store/range_digest.hpp"

#include <algorithm>

#include "remesh/core/buffer.hpp"
#include "remesh/store/extents.hpp"

namespace remesh {

std::optional<Digest> digest_of_ranges(
    std::span<const ByteRange> ranges,
    const std::function<bool(std::int64_t at, std::span<std::byte> into)>& read) {
  std::int64_t most_bytes = 0;
  for (const ByteRange& range : ranges) most_bytes = std::max(most_bytes, range.end - range.begin);
  Buffer buffer(std::min(most_bytes, ExtentMap::block_bytes));
  Digest digest;
  for (const ByteRange& range : ranges) {
    for (std::int64_t at = range.begin; at < range.end;) {
      const std::int64_t length = std::min(range.end - at, ExtentMap::block_bytes);
      const auto part = buffer.bytes().first(static_cast<std::size_t>(length));
      if (!read(at, part)) return std::nullopt;
      digest = extend(digest, part);
      at += length;
    }
  }
  return digest;
}

}  // namespace remesh
