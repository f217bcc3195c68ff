#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "remesh/core/budget.hpp"
#include "remesh/core/progress.hpp"
#include "remesh/core/thread_pool.hpp"
#include "remesh/store/reader.hpp"

namespace remesh {

/// What a sweep needs of the machine.
struct SweepContext {
  ThreadPool& pool;
  MemoryBudget& budget;
  Progress& progress;
  const StopFlag& stop;
};

/// A stretch of a file: some bytes of one extent, or of a guarded range.
struct Stretch {
  std::uint32_t file = 0;
  std::int64_t offset_bytes = 0;
  std::int64_t length_bytes = 0;
};

/// Reads each stretch once, in long runs and in the order given, and hands the bytes to `visit`:
/// from many threads, one call for each piece of at most a few MiB. Pieces end at multiples of
/// ExtentMap::block_bytes from the stretch's begin. `progress` is advanced, not begun.
void sweep(const SweepContext& context, const Reader& reader, std::span<const Stretch> stretches,
           const Tap& visit);

/// The stretches of all extents that have bytes, in file order.
std::vector<Stretch> all_extents(const ExtentMap& extents);

}  // namespace remesh
