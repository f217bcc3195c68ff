#include "repair_blocks.hpp"

#include <algorithm>
#include <tuple>

#include "remesh/core/error.hpp"
#include "repair_burst.hpp"

namespace remesh::native {
namespace {

constexpr std::size_t most_open = 64;

auto box_of(const Extent& extent) { return std::tie(extent.tensor, extent.box); }

}  // namespace

void RepairBlocks::learn() {
  by_box_.clear();
  std::size_t count = 0;
  for (const ShardState& shard : shards_) count += shard.extents.size();
  by_box_.reserve(count);
  for (std::uint32_t shard = 0; shard < shards_.size(); ++shard) {
    for (std::uint32_t i = 0; i < shards_[shard].extents.size(); ++i)
      by_box_.emplace_back(shard, i);
  }
  std::ranges::sort(by_box_, [this](const Place& left, const Place& right) {
    const Extent& a = extent(left);
    const Extent& b = extent(right);
    return std::tie(a.tensor, a.box, a.copy) < std::tie(b.tensor, b.box, b.copy);
  });
}

std::vector<BlockId> RepairBlocks::elsewhere(std::uint32_t tensor, const Box& box,
                                             std::uint32_t shard, std::uint32_t copy,
                                             std::int64_t k) const {
  const auto key = std::tie(tensor, box);
  const auto box_at = [this](const Place& place) { return box_of(extent(place)); };
  std::vector<BlockId> all;
  for (auto at = std::ranges::lower_bound(by_box_, key, {}, box_at);
       at != by_box_.end() && box_at(*at) == key; ++at) {
    const Place& place = *at;
    if (place.first == shard && extent(place).copy == copy) continue;
    if (k < num_blocks(extent(place))) all.push_back({place.first, place.second, k});
  }
  return all;
}

std::shared_ptr<File> RepairBlocks::open(std::uint32_t shard) const {
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find(open_, shard, [](const auto& each) { return each.first; });
  if (known != open_.end()) {
    open_.splice(open_.begin(), open_, known);
    return open_.front().second;
  }
  if (open_.size() >= most_open) open_.pop_back();
  open_.emplace_front(shard, files_.open(shards_[shard].path));
  return open_.front().second;
}

// What a medium does not give back is damaged; a copy may have it.
bool RepairBlocks::read(std::uint32_t shard, BlockPlace place, std::span<std::byte> into) const {
  if (place.offset_bytes + place.length_bytes > shards_[shard].found_bytes) return false;
  try {
    open(shard)->read_at(place.offset_bytes, into);
    return true;
  } catch (const Error& error) {
    if (error.code() == Errc::io || error.code() == Errc::corrupt) return false;
    throw;
  }
}

std::optional<RepairBlocks::Found> RepairBlocks::fetch(const BlockId& block,
                                                       std::span<std::byte> into) const {
  const Digest wanted = recorded(block);
  if (read(block.shard, place(block), into) && digest_of(into) == wanted) return Found{block};
  const Extent& own = extent(block);
  std::vector<BlockId> candidates = elsewhere(own.tensor, own.box, block.shard, own.copy, block.k);
  std::erase_if(candidates, [&](const BlockId& other) {
    return place(other).length_bytes != std::ssize(into);
  });
  for (const BlockId& other : candidates) {
    if (read(other.shard, place(other), into) && digest_of(into) == wanted) return Found{other};
  }
  candidates.insert(candidates.begin(), block);
  for (const BlockId& other : candidates) {
    if (!read(other.shard, place(other), into)) continue;
    if (const auto burst = undo_burst(into, wanted)) return Found{other, burst};
  }
  return std::nullopt;
}

}  // namespace remesh::native
