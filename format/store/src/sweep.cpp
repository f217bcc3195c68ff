#include "remesh/store/sweep.hpp"

#include <algorithm>
#include <optional>

#include "remesh/core/buffer.hpp"

namespace remesh {
namespace {

constexpr std::int64_t most_piece_bytes = 4 * ExtentMap::block_bytes;

// A piece is whole blocks, and what all workers hold together is at most a quarter of the budget.
std::int64_t piece_bytes(const SweepContext& context) {
  const std::int64_t share = context.budget.limit_bytes() / 4 / context.pool.size();
  const std::int64_t blocks = share / ExtentMap::block_bytes;
  return std::clamp(blocks * ExtentMap::block_bytes, ExtentMap::block_bytes, most_piece_bytes);
}

std::vector<Stretch> cut(std::span<const Stretch> stretches, std::int64_t most) {
  std::vector<Stretch> pieces;
  for (const Stretch& stretch : stretches) {
    for (std::int64_t at = 0; at < stretch.length_bytes; at += most) {
      pieces.push_back(
          {stretch.file, stretch.offset_bytes + at, std::min(most, stretch.length_bytes - at)});
    }
  }
  return pieces;
}

}  // namespace

void sweep(const SweepContext& context, const Reader& reader, std::span<const Stretch> stretches,
           const Tap& visit) {
  const std::int64_t most = piece_bytes(context);
  const std::vector<Stretch> pieces = cut(stretches, most);
  const auto workers = static_cast<std::size_t>(context.pool.size());
  const auto held = context.budget.reserve(most * context.pool.size(), "read buffers");
  std::vector<std::optional<Buffer>> buffers(workers);

  context.pool.run(pieces.size(), [&](std::size_t index, int worker) {
    context.stop.check();
    std::optional<Buffer>& buffer = buffers[static_cast<std::size_t>(worker)];
    if (!buffer) buffer.emplace(most);
    const Stretch& piece = pieces[index];
    const auto bytes = buffer->bytes().first(static_cast<std::size_t>(piece.length_bytes));
    reader.read_bytes(piece.file, piece.offset_bytes, bytes);
    visit(piece.file, piece.offset_bytes, bytes);
    context.progress.advance(piece.length_bytes);
  });
}

std::vector<Stretch> all_extents(const ExtentMap& extents) {
  std::vector<Stretch> stretches;
  for (const Extent& extent : extents.extents()) {
    if (extent.length_bytes == 0) continue;
    stretches.push_back({extent.file, extent.offset_bytes, extent.length_bytes});
  }
  return stretches;
}

}  // namespace remesh
