#include "remesh/store/copies.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "extent_reader.hpp"
#include "remesh/core/buffer.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/tally.hpp"

namespace remesh {
namespace {

constexpr std::int64_t compared_bytes = std::int64_t{1} << 20;
constexpr std::int64_t most_row_bytes = std::int64_t{64} << 20;

using Numbers = std::vector<std::uint32_t>;

// The extents of each piece that is stored more than once, by tensor and box.
std::vector<Numbers> several(const ExtentMap& map, std::size_t num_tensors) {
  std::vector<Numbers> pieces;
  for (std::size_t tensor = 0; tensor < num_tensors; ++tensor) {
    std::map<Box, Numbers> by_box;
    for (const std::uint32_t number : map.of(tensor)) {
      const Extent& extent = map.extents()[number];
      if (extent.length_bytes > 0) by_box[extent.box].push_back(number);
    }
    for (auto& [box, numbers] : by_box) {
      if (numbers.size() > 1) pieces.push_back(std::move(numbers));
    }
  }
  return pieces;
}

Box at_origin(const Box& box) {
  Box moved = box;
  for (int dim = 0; dim < box.ndim(); ++dim) moved[dim] = {0, box[dim].size()};
  return moved;
}

// Each of these extents as a tensor of its own, so that each gets a digest of its own.
struct Apart {
  std::vector<TensorDesc> tensors;
  ExtentMap map;
};

// In the order that a map gives its extents.
Numbers all_of(const std::vector<Numbers>& pieces) {
  Numbers all;
  for (const Numbers& piece : pieces) all.insert(all.end(), piece.begin(), piece.end());
  std::ranges::sort(all);
  return all;
}

Apart taken_apart(const Reader& source, const Numbers& wanted) {
  const ExtentMap& map = source.extents();
  Apart out;
  out.tensors.reserve(wanted.size());
  std::vector<Extent> extents;
  extents.reserve(wanted.size());
  std::vector<Digest> crcs;
  for (const std::uint32_t number : wanted) {
    Extent extent = map.extents()[number];
    const auto recorded = map.blocks(extent);
    extent.box = at_origin(extent.box);
    out.tensors.push_back({"", source.catalog().tensors[extent.tensor].dtype, extent.box});
    extent.tensor = static_cast<std::uint32_t>(extents.size());
    extent.copy = 0;
    if (!recorded.empty()) extent.first_block = std::ssize(crcs);
    crcs.insert(crcs.end(), recorded.begin(), recorded.end());
    extents.push_back(extent);
  }
  out.map = ExtentMap({map.files().begin(), map.files().end()}, std::move(extents), std::move(crcs),
                      {}, {map.all_frames().begin(), map.all_frames().end()});
  return out;
}

// What passed of the extents: their digests, and which of them are not what was recorded.
class Passed {
 public:
  Passed(const SweepContext& context, const Reader& source, const std::vector<Numbers>& pieces)
      : order_(all_of(pieces)),
        apart_(taken_apart(source, order_)),
        tally_(apart_.tensors, apart_.map, true) {
    const auto stretches = all_extents(apart_.map);
    std::int64_t bytes = 0;
    for (const Stretch& stretch : stretches) bytes += stretch.length_bytes;
    context.progress.begin("comparing copies", bytes);
    sweep(context, source, stretches, tally_.tap(),
          [this](std::int64_t number, const Error&) { note_bad_frame(number); });
    context.progress.end();
  }

  bool is_damaged(std::uint32_t number) const {
    const std::size_t at = place_of(number);
    const Extent& extent = apart_.map.extents()[at];
    if (bad_.contains(static_cast<std::uint32_t>(at))) return true;
    const auto recorded = apart_.map.blocks(extent);
    for (std::size_t k = 0; k < recorded.size(); ++k) {
      if (tally_.block(at, static_cast<std::int64_t>(k)) != recorded[k]) return true;
    }
    return false;
  }

  Digest digest(std::uint32_t number) const { return tally_.sum(place_of(number)).digest; }

 private:
  std::size_t place_of(std::uint32_t number) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(order_, number) - order_.begin());
  }

  void note_bad_frame(std::int64_t number) {
    const std::lock_guard lock(mutex_);
    bad_.insert(apart_.map.extent_of_frame(number));
  }

  const Numbers order_;  // the extents that are compared, in the order of apart_
  const Apart apart_;
  Tally tally_;
  std::mutex mutex_;
  std::set<std::uint32_t> bad_;
};

// What is damaged, and what the others say, by digest.
std::optional<UnlikeCopies> judged(const Numbers& piece, const Passed& passed) {
  UnlikeCopies unlike;
  for (const std::uint32_t number : piece) {
    if (passed.is_damaged(number)) {
      unlike.damaged.push_back(number);
      continue;
    }
    const Digest digest = passed.digest(number);
    const auto same = std::ranges::find_if(unlike.groups, [&](const Numbers& group) {
      return passed.digest(group.front()) == digest;
    });
    if (same != unlike.groups.end()) {
      same->push_back(number);
    } else {
      unlike.groups.push_back({number});
    }
  }
  if (unlike.damaged.empty() && unlike.groups.size() == 1) return std::nullopt;
  std::ranges::stable_sort(unlike.groups, std::greater{}, &Numbers::size);
  return unlike;
}

}  // namespace

std::vector<UnlikeCopies> unlike_copies(const SweepContext& context, const Reader& source) {
  const std::vector<Numbers> pieces = several(source.extents(), source.catalog().tensors.size());
  if (pieces.empty()) return {};
  const Passed passed(context, source, pieces);
  std::vector<UnlikeCopies> all;
  for (const Numbers& piece : pieces) {
    if (auto unlike = judged(piece, passed)) all.push_back(*std::move(unlike));
  }
  return all;
}

std::unique_ptr<Reader> reader_with_first(const Reader& source,
                                          std::span<const std::uint32_t> firsts) {
  const ExtentMap& map = source.extents();
  std::vector<Extent> extents(map.extents().begin(), map.extents().end());
  std::vector<Digest> crcs;
  for (Extent& extent : extents) {
    const auto recorded = map.blocks(extent);
    if (!recorded.empty()) extent.first_block = std::ssize(crcs);
    crcs.insert(crcs.end(), recorded.begin(), recorded.end());
  }
  for (const std::uint32_t first : firsts) {
    const Extent& chosen = map.extents()[first];
    for (const std::uint32_t number : map.of(chosen.tensor)) {
      Extent& extent = extents[number];
      if (extent.copy == 0 && extent.box == chosen.box) extent.copy = chosen.copy;
    }
    extents[first].copy = 0;
  }
  ByteSource bytes;
  bytes.read = [&source](std::uint32_t file, std::int64_t offset, std::span<std::byte> into) {
    source.read_bytes(file, offset, into);
  };
  bytes.side_bytes = [&source](std::size_t side) { return source.catalog().side[side].size_bytes; };
  bytes.read_side = [&source](std::size_t side, std::span<std::byte> into) {
    std::ranges::copy(source.side(source.catalog().side[side]), into.begin());
  };
  return make_extent_reader(source.catalog(),
                            ExtentMap({map.files().begin(), map.files().end()}, std::move(extents),
                                      std::move(crcs), {map.guards().begin(), map.guards().end()},
                                      {map.all_frames().begin(), map.all_frames().end()}),
                            std::move(bytes));
}

std::optional<Box> first_difference(const Reader& source, std::uint32_t one, std::uint32_t other) {
  const Extent& extent = source.extents().extents()[one];
  const TensorDesc& desc = source.catalog().tensors[extent.tensor];
  const auto left = reader_with_first(source, std::array{one});
  const auto right = reader_with_first(source, std::array{other});
  const bool whole = extent.box.ndim() == 0 || bits(desc.dtype) % 8 != 0;
  const Index rows = whole ? 1 : extent.box[0].size();
  const std::int64_t row_bytes = extent.length_bytes / rows;
  if (row_bytes > most_row_bytes) return std::nullopt;
  const Index step = std::clamp<Index>(compared_bytes / row_bytes, 1, rows);
  Buffer a(step * row_bytes);
  Buffer b(step * row_bytes);
  for (Index begin = 0; begin < rows; begin += step) {
    Box box = extent.box;
    if (!whole) {
      const Index from = extent.box[0].begin + begin;
      box[0] = {from, std::min(from + step, extent.box[0].end)};
    }
    const auto bytes = static_cast<std::size_t>(num_bytes(desc.dtype, box));
    left->read(extent.tensor, box, a.bytes().first(bytes), {});
    right->read(extent.tensor, box, b.bytes().first(bytes), {});
    const auto [at, end] = std::ranges::mismatch(a.bytes().first(bytes), b.bytes().first(bytes));
    const std::int64_t offset = at - a.bytes().begin();
    if (offset == std::ssize(a.bytes().first(bytes))) continue;
    return element_of(box, offset * 8 / bits(desc.dtype));
  }
  return std::nullopt;
}

}  // namespace remesh
