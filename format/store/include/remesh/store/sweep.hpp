#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "remesh/core/budget.hpp"
#include "remesh/core/error.hpp"
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

/// A stretch of a file: some bytes of one extent, or one frame.
struct Stretch {
  std::uint32_t file = 0;
  std::int64_t offset_bytes = 0;
  std::int64_t length_bytes = 0;
  std::int64_t frame = -1;  ///< its number among all frames, or -1
};

/// Hears of a frame that has its recorded CRC, or has none, and is no frame. Called from many
/// threads.
using OnBadFrame = std::function<void(std::int64_t number, const Error& why)>;

/// Reads each stretch once, in long runs and in the order given, and hands the bytes to `visit`:
/// from many threads, one call for each piece of at most a few MiB. Pieces end at multiples of
/// ExtentMap::block_bytes from the stretch's begin; a frame is one piece, of which `visit` hears as
/// it lies there, and, if that is what is recorded, of what is unpacked from it. Without
/// `on_bad_frame` one that cannot be unpacked is an error. `progress` is advanced, not begun.
void sweep(const SweepContext& context, const Reader& reader, std::span<const Stretch> stretches,
           const Tap& visit, const OnBadFrame& on_bad_frame = nullptr);

/// The stretches of all extents that have bytes, in file order.
std::vector<Stretch> all_extents(const ExtentMap& extents);

}  // namespace remesh
