#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "remesh/core/buffer.hpp"
#include "remesh/schema/pieces.hpp"
#include "remesh/store/reader.hpp"
#include "remesh/store/writer.hpp"

namespace remesh::detail {

/// One panel of one tensor, by its number in each catalog.
struct Panel {
  std::size_t source_tensor = 0;
  std::size_t target_tensor = 0;
  Box box;                 ///< in elements
  std::uint32_t file = 0;  ///< of the target: the one that is written first
  std::uint32_t lane = 0;  ///< panels of one lane come one after another; see in_lanes
};

/// The largest panels.
inline constexpr std::int64_t most_panel_bytes = std::int64_t{2} << 20;

/// The smallest: with less, a job does not begin.
inline constexpr std::int64_t least_panel_bytes = std::int64_t{64} << 10;

/// How many chunks may be under way, or wait until they can be appended, where a target is
/// compressed.
inline constexpr unsigned window_for_each_worker = 8;

/// What one buffer of one worker may have: a quarter of the budget is for panels.
constexpr std::int64_t panel_limit(std::int64_t limit_bytes, std::int64_t workers, int buffers) {
  const std::int64_t share = limit_bytes / 4 / (buffers * workers);
  return share < most_panel_bytes ? share : most_panel_bytes;
}

/// What a reader keeps of unpacked chunks: those that lie side by side (chunks.hpp), for the panels
/// of two workers, but at most an eighth of the budget.
constexpr std::int64_t kept_unpacked_bytes(std::int64_t side_by_side, std::int64_t limit_bytes) {
  const std::int64_t share = limit_bytes / 8;
  const std::int64_t wanted = 2 * side_by_side < share ? 2 * side_by_side : share;
  return wanted > Reader::default_kept_bytes ? wanted : Reader::default_kept_bytes;
}

/// All panels of all tensors of the target. A panel has at most `max_bytes` in either dtype; for
/// elements narrower than a byte, one row may have more. Where a piece of `extents`, the target's,
/// is in chunks, a panel is one chunk or a part of another piece. `source_of` maps target numbers
/// to source numbers.
std::vector<Panel> all_panels(const Catalog& source, const Catalog& target,
                              const ExtentMap& extents, const std::vector<std::size_t>& source_of,
                              std::int64_t max_bytes);

/// Who holds the distinct pieces of a tensor, before and after; in the order of their boxes.
struct Holders {
  std::size_t target_tensor = 0;
  std::vector<HeldBox> source;
  std::vector<HeldBox> target;
};

/// The holders of the tensor that each lane is at. Thread-safe.
class HoldersOfLanes {
 public:
  HoldersOfLanes(const Catalog& source, const Catalog& target)
      : source_(source.layout, source.tensors), target_(target.layout, target.tensors) {}

  std::shared_ptr<const Holders> of(const Panel& panel);

 private:
  const Pieces source_;
  const Pieces target_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const Holders>> last_;
};

/// A worker's memory: one panel as it was read, one as it is written, and, where dtypes change, one
/// between.
struct PanelBuffers {
  Buffer source;
  Buffer target;
  Buffer cast;
};

/// Bytes of one panel. What ranks keep and what moves between them counts every replica, as
/// PlanSummary does.
struct PanelBytes {
  std::int64_t read = 0;
  std::int64_t kept = 0;
  std::int64_t moved = 0;
};

/// Reads a panel, turns it into the target's dtype, rearranges it, writes it: each stored source
/// piece and each stored target piece is touched in one run. Throws Error(unsupported), naming the
/// first element, if a value is beyond the new dtype.
PanelBytes copy_panel(const Reader& source, Writer& target, const Panel& panel,
                      const Holders& holders, PanelBuffers& buffers, const Tap& on_read,
                      const Tap& on_write);

}  // namespace remesh::detail
