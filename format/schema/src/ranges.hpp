#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "remesh/schema/box.hpp"

namespace remesh::detail {

/// How many indices some disjoint ranges have together.
inline Index size_of(std::span<const Range> ranges) noexcept {
  Index size = 0;
  for (const Range& range : ranges) size += range.size();
  return size;
}

/// Adds the indices [run.begin, run.end) of all `ranges`, taken as one run, to `taken`; neighbours
/// are joined.
inline void take_run(std::span<const Range> ranges, Range run, std::vector<Range>& taken) {
  Index before = 0;
  for (const Range& range : ranges) {
    const Index begin = range.begin + std::max(run.begin - before, Index{0});
    const Index end = range.begin + std::min(run.end - before, range.size());
    before += range.size();
    if (begin >= end) continue;
    if (!taken.empty() && taken.back().end == begin) {
      taken.back().end = end;
    } else {
      taken.push_back({begin, end});
    }
  }
}

/// How many blocks `size` indices are in; the last one may be smaller.
constexpr Index blocks_in(Index size, Index block) noexcept {
  return size / block + (size % block != 0 ? 1 : 0);
}

}  // namespace remesh::detail
