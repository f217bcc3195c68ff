#include "remesh/store/sweep.hpp"

#include <algorithm>
#include <optional>

#include "remesh/core/buffer.hpp"
#include "remesh/store/chunks.hpp"

namespace remesh {
namespace {

// What was read is hashed while it is in the processor's own cache: pieces of 4 MiB took a fifth
// longer.
constexpr std::int64_t most_piece_bytes = ExtentMap::block_bytes;

// A piece is whole blocks, and what all workers hold together is at most a quarter of the budget.
std::int64_t piece_bytes(const SweepContext& context) {
  const std::int64_t share = context.budget.limit_bytes() / 4 / context.pool.size();
  const std::int64_t blocks = share / ExtentMap::block_bytes;
  return std::clamp(blocks * ExtentMap::block_bytes, ExtentMap::block_bytes, most_piece_bytes);
}

std::vector<Stretch> cut(std::span<const Stretch> stretches, std::int64_t most) {
  std::vector<Stretch> pieces;
  for (const Stretch& stretch : stretches) {
    if (stretch.frame >= 0) {
      pieces.push_back(stretch);
      continue;
    }
    for (std::int64_t at = 0; at < stretch.length_bytes; at += most) {
      pieces.push_back(
          {stretch.file, stretch.offset_bytes + at, std::min(most, stretch.length_bytes - at)});
    }
  }
  return pieces;
}

struct Visit {
  const Reader& reader;
  const Tap& tap;
  const OnBadFrame& on_bad_frame;
};

// What does not have its CRC is not unpacked: who listens to frames knows it.
void visit_frame(const Visit& visit, std::int64_t number, std::span<const std::byte> stored,
                 std::span<std::byte> buffer) {
  const ExtentMap& map = visit.reader.extents();
  const Extent& extent = map.extents()[map.extent_of_frame(number)];
  const std::int64_t k = number - extent.first_frame;
  const auto at = static_cast<std::size_t>(k);
  const Digest digest = digest_of(stored);
  visit.tap.frame(number, map.frames(extent)[at], digest);
  const auto blocks = map.blocks(extent);
  if (!blocks.empty() && digest != blocks[at]) return;
  const DType dtype = visit.reader.catalog().tensors[extent.tensor].dtype;
  const auto chunk = buffer.first(static_cast<std::size_t>(whole_chunk_bytes(dtype, extent)));
  try {
    visit.reader.unpack(extent, k, stored, chunk);
  } catch (const Error& error) {
    if (!visit.on_bad_frame || error.code() != Errc::corrupt) throw;
    visit.on_bad_frame(number, error);
    return;
  }
  const ByteRange range = chunk_range(dtype, extent, k);
  visit.tap.unpacked(number, 0, chunk.first(static_cast<std::size_t>(range.end - range.begin)));
}

}  // namespace

void sweep(const SweepContext& context, const Reader& reader, std::span<const Stretch> stretches,
           const Tap& visit, const OnBadFrame& on_bad_frame) {
  const std::int64_t most = piece_bytes(context);
  const std::vector<Stretch> pieces = cut(stretches, most);
  const auto workers = static_cast<std::size_t>(context.pool.size());
  const bool packed = !reader.extents().all_frames().empty();
  const std::int64_t each = most + (packed ? most_chunk_bytes : 0);
  const auto held = context.budget.reserve(each * context.pool.size(), "read buffers");
  std::vector<std::optional<Buffer>> buffers(workers);
  std::vector<std::optional<Buffer>> unpacked(workers);

  context.pool.run(pieces.size(), [&](std::size_t index, int worker) {
    context.stop.check();
    std::optional<Buffer>& buffer = buffers[static_cast<std::size_t>(worker)];
    if (!buffer) buffer.emplace(most);
    const Stretch& piece = pieces[index];
    const auto bytes = buffer->bytes().first(static_cast<std::size_t>(piece.length_bytes));
    reader.read_bytes(piece.file, piece.offset_bytes, bytes);
    if (piece.frame < 0) {
      visit(piece.file, piece.offset_bytes, bytes);
    } else {
      std::optional<Buffer>& chunk = unpacked[static_cast<std::size_t>(worker)];
      if (!chunk) chunk.emplace(most_chunk_bytes);
      visit_frame({reader, visit, on_bad_frame}, piece.frame, bytes, chunk->bytes());
    }
    context.progress.advance(piece.length_bytes);
  });
}

std::vector<Stretch> all_extents(const ExtentMap& extents) {
  std::vector<Stretch> stretches;
  for (const Extent& extent : extents.extents()) {
    if (extent.length_bytes == 0) continue;
    if (!is_chunked(extent)) {
      stretches.push_back({extent.file, extent.offset_bytes, extent.length_bytes});
      continue;
    }
    std::int64_t number = extent.first_frame;
    for (const Frame& frame : extents.frames(extent)) {
      stretches.push_back({extent.file, frame.offset_bytes, frame.length_bytes, number++});
    }
  }
  return stretches;
}

}  // namespace remesh
