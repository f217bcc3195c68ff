#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>

#include "remesh/store/extents.hpp"

namespace remesh {

/// Calls visit(extent, begin, part) for each extent that has some of `bytes`, which lie at `offset`
/// of a file: `part` are those, and they begin `begin` bytes into the packed box. Extents in chunks
/// are passed over, for what lies in their place is no elements. O(log extents) and the visits.
template <typename Visit>
void for_each_extent(const ExtentMap& map, std::uint32_t file, std::int64_t offset,
                     std::span<const std::byte> bytes, const Visit& visit) {
  const std::span<const Extent> all = map.extents();
  const std::int64_t end = offset + std::ssize(bytes);
  const Extent* extent = map.at(file, offset);
  if (extent == nullptr) {
    const auto next = std::ranges::partition_point(all, [&](const Extent& each) {
      return std::tie(each.file, each.offset_bytes) < std::tie(file, offset);
    });
    extent = all.data() + (next - all.begin());
  }
  for (; extent != all.data() + all.size() && extent->file == file; ++extent) {
    if (extent->offset_bytes >= end) break;
    const std::int64_t from = std::max(offset, extent->offset_bytes);
    const std::int64_t to = std::min(end, extent->offset_bytes + extent->length_bytes);
    if (from >= to || is_chunked(*extent)) continue;
    visit(*extent, from - extent->offset_bytes,
          bytes.subspan(static_cast<std::size_t>(from - offset),
                        static_cast<std::size_t>(to - from)));
  }
}

}  // namespace remesh
