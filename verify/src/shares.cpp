#include "shares.hpp"

#include <algorithm>
#include <numeric>

#include "remesh/core/checked.hpp"

namespace remesh::detail {
namespace {

// One block in so many, besides each file's first and last.
constexpr std::size_t quick_share = 100;

constexpr std::int64_t most = std::int64_t{1} << 62;

std::int64_t sum_of(std::int64_t a, std::int64_t b) {
  return std::min(checked_add(a, b).value_or(most), most);
}

// Of extents without bytes there are none.
template <typename Visit>
void for_each_block(const ExtentMap& map, const Visit& visit) {
  for (std::uint32_t number = 0; number < map.extents().size(); ++number) {
    const std::int64_t count = num_blocks(map.extents()[number]);
    for (std::int64_t k = 0; k < count; ++k) visit(Block{number, k});
  }
}

// The line of all that is read, and a stretch of it.
class Line {
 public:
  Line(std::int64_t total, const Subset& subset)
      : part_(
            std::max<std::int64_t>(total / subset.count + (total % subset.count != 0 ? 1 : 0), 1)),
        wanted_(subset.number - 1) {}

  /// Whether the next so many bytes begin in it.
  bool takes(std::int64_t bytes) {
    const bool is_wanted = at_ / part_ == wanted_;
    at_ = sum_of(at_, bytes);
    return is_wanted;
  }

 private:
  std::int64_t part_;
  std::int64_t wanted_;
  std::int64_t at_ = 0;
};

}  // namespace

Stretch place_of(const ExtentMap& map, const Block& block) {
  const Extent& extent = map.extents()[block.extent];
  if (is_chunked(extent)) {
    const Frame& frame = map.frames(extent)[static_cast<std::size_t>(block.number)];
    return {extent.file, frame.offset_bytes, frame.length_bytes};
  }
  const std::int64_t begin = block.number * ExtentMap::block_bytes;
  return {extent.file, extent.offset_bytes + begin,
          std::min(ExtentMap::block_bytes, extent.length_bytes - begin)};
}

Share sample_of(const ExtentMap& map) {
  std::vector<Block> all;
  for_each_block(map, [&](const Block& block) {
    if (!map.blocks(map.extents()[block.extent]).empty()) all.push_back(block);
  });
  Share share{{}, all_guards(map)};
  const auto file_at = [&](std::size_t at) { return map.extents()[all[at].extent].file; };
  for (std::size_t at = 0; at < all.size(); ++at) {
    const bool first = at == 0 || file_at(at - 1) != file_at(at);
    const bool last = at + 1 == all.size() || file_at(at + 1) != file_at(at);
    if (first || last || at % quick_share == 0) share.blocks.push_back(all[at]);
  }
  return share;
}

Share part_of(const ExtentMap& map, const Subset& subset) {
  const std::vector<std::uint32_t> guards = all_guards(map);
  std::int64_t total = bytes_of_guards(map, guards);
  for_each_block(
      map, [&](const Block& block) { total = sum_of(total, place_of(map, block).length_bytes); });
  Line line(total, subset);
  Share share;
  for_each_block(map, [&](const Block& block) {
    if (line.takes(place_of(map, block).length_bytes)) share.blocks.push_back(block);
  });
  for (const std::uint32_t guard : guards) {
    if (line.takes(bytes_of_guards(map, {&guard, 1}))) share.guards.push_back(guard);
  }
  return share;
}

std::vector<std::uint32_t> all_guards(const ExtentMap& map) {
  std::vector<std::uint32_t> numbers(map.guards().size());
  std::iota(numbers.begin(), numbers.end(), 0U);
  return numbers;
}

std::int64_t bytes_of_guards(const ExtentMap& map, std::span<const std::uint32_t> guards) {
  std::int64_t sum = 0;
  for (const std::uint32_t guard : guards) {
    for (const ByteRange& range : map.guards()[guard].ranges) {
      sum = sum_of(sum, range.end - range.begin);
    }
  }
  return sum;
}

}  // namespace remesh::detail
