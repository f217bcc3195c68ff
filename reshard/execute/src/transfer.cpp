#include "remesh/execute/transfer.hpp"

#include <algorithm>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "cast_tally.hpp"
#include "panel_copy.hpp"
#include "panel_order.hpp"
#include "proof.hpp"
#include "remesh/core/error.hpp"
#include "remesh/schema/cast.hpp"
#include "remesh/store/certificate.hpp"
#include "remesh/store/chunks.hpp"
#include "remesh/store/sweep.hpp"
#include "sliding_window.hpp"

namespace remesh {
namespace {

using detail::least_panel_bytes;
using detail::Panel;
using detail::PanelBuffers;

bool serves(const TensorDesc& stored, const TensorDesc& wanted, bool may_change) {
  if (stored == wanted) return true;
  return may_change && can_become(stored, wanted);
}

// For each tensor of the target: its number in the source.
std::vector<std::size_t> match(const Catalog& source, const Catalog& target, bool may_change) {
  std::unordered_map<std::string_view, std::size_t> numbers;
  for (std::size_t i = 0; i < source.tensors.size(); ++i) {
    numbers.emplace(source.tensors[i].name, i);
  }
  std::vector<std::size_t> source_of;
  for (const TensorDesc& wanted : target.tensors) {
    const auto found = numbers.find(wanted.name);
    if (found == numbers.end() || !serves(source.tensors[found->second], wanted, may_change)) {
      throw Error(Errc::invalid_argument,
                  fmt::format("cannot write {}: the source has {}", to_string(wanted),
                              found == numbers.end() ? "no tensor of that name"
                                                     : to_string(source.tensors[found->second])));
    }
    source_of.push_back(found->second);
  }
  if (target.tensors.size() != source.tensors.size() && !may_change) {
    throw Error(Errc::invalid_argument,
                fmt::format("cannot write {} tensors: the source has {}, and none may be dropped",
                            target.tensors.size(), source.tensors.size()));
  }
  return source_of;
}

std::int64_t panel_bytes(const Context& context, int buffers) {
  const std::int64_t workers = context.pool.size();
  const std::int64_t share = detail::panel_limit(context.budget.limit_bytes(), workers, buffers);
  if (share < least_panel_bytes) {
    throw Error(
        Errc::out_of_memory,
        fmt::format("cannot give {} workers a panel each: {} are allowed, but they need {}; "
                    "raise `--memory` or lower `-j`",
                    workers, format_bytes(context.budget.limit_bytes()),
                    format_bytes(least_panel_bytes * 4 * buffers * workers)),
        "RM705");
  }
  return share;
}

// What passes by while panels are moved.
struct Passing {
  Passing(const Reader& source, const Writer& target, const ExtentMap& on_medium,
          std::span<const std::size_t> source_of)
      : sent(source.catalog().tensors, source.extents(), /*with_blocks=*/false),
        cast(source.catalog(), source.extents(), target.catalog(), source_of),
        arrived(target.catalog().tensors, on_medium, /*with_blocks=*/true) {}

  // Two buffers for each worker, and one between where dtypes change.
  int buffers() const noexcept { return cast.any() ? 3 : 2; }

  Tally sent;
  detail::CastTally cast;
  Tally arrived;
};

// The largest panel: more than was asked for only where one row of sub-byte elements is larger.
std::int64_t buffer_bytes(const Catalog& source, const Catalog& target,
                          const std::vector<Panel>& panels) {
  std::int64_t most = 1;
  for (const Panel& panel : panels) {
    most = std::max({most, num_bytes(source.tensors[panel.source_tensor].dtype, panel.box),
                     num_bytes(target.tensors[panel.target_tensor].dtype, panel.box)});
  }
  return most;
}

// Frames are appended in the order of the panels. One that is ready before its turn waits in
// memory, so panels that are under way stay close to each other.
void run_in_window(Context& context, const Writer& target, std::size_t count,
                   const std::function<void(std::size_t index, int worker)>& task) {
  const int workers = context.pool.size();
  if (target.extents().all_frames().empty()) return context.pool.run(count, task);
  const std::size_t width =
      std::size_t{detail::window_for_each_worker} * static_cast<std::size_t>(workers);
  const auto held = context.budget.reserve(
      target.working_bytes(workers) +
          static_cast<std::int64_t>(width) * target.extents().copies() * most_chunk_bytes,
      "compression");
  detail::SlidingWindow window(width);
  context.pool.run(count, [&](std::size_t index, int worker) {
    const auto stay = window.enter(index);
    task(index, worker);
  });
}

// Runs `copy`. What it throws of a damaged copy goes on with what to do about that.
detail::PanelBytes telling_of_copies(const detail::NamedSource& source, std::size_t tensor,
                                     const std::function<detail::PanelBytes()>& copy) {
  try {
    return copy();
  } catch (const Error& error) {
    const std::string hint = error.id() == "RM207" ? detail::other_copies(source, tensor) : "";
    if (hint.empty()) throw;
    throw Error(error.code(), error.what() + hint, error.id());
  }
}

// Moves all panels; returns the bytes of all of them.
detail::PanelBytes move_panels(Context& context, const detail::NamedSource& named, Writer& target,
                               const std::vector<Panel>& panels,
                               std::span<const std::uint32_t> order, Passing& passing) {
  const Reader& source = named.reader;
  const Tap on_read(
      [&passing](std::uint32_t file, std::int64_t offset, Tap::Bytes bytes) {
        passing.sent.add(file, offset, bytes);
        if (passing.cast.any()) passing.cast.add(file, offset, bytes);
      },
      nullptr,
      [&passing](std::int64_t number, std::int64_t within, Tap::Bytes bytes) {
        passing.sent.add_unpacked(number, within, bytes);
        if (passing.cast.any()) passing.cast.add_unpacked(number, within, bytes);
      });
  const Tap on_write = passing.arrived.tap();
  const std::int64_t size = buffer_bytes(source.catalog(), target.catalog(), panels);
  const std::int64_t cast_size = passing.cast.any() ? size : 0;
  const auto held =
      context.budget.reserve(passing.buffers() * size * context.pool.size(), "panels");
  std::vector<std::optional<PanelBuffers>> buffers(static_cast<std::size_t>(context.pool.size()));
  detail::HoldersOfLanes holders(source.catalog(), target.catalog());
  std::mutex mutex;
  detail::PanelBytes all;

  std::int64_t wanted_bytes = 0;
  for (const Panel& panel : panels) {
    wanted_bytes += num_bytes(source.catalog().tensors[panel.source_tensor].dtype, panel.box);
  }
  const std::int64_t kept = detail::kept_unpacked_bytes(
      most_bytes_side_by_side(source.extents(), source.catalog().tensors.size()),
      context.budget.limit_bytes());
  const auto unpacked =
      context.budget.reserve(kept - Reader::default_kept_bytes, "unpacked chunks");
  source.keep_unpacked(kept);
  context.progress.begin("copying", wanted_bytes);
  run_in_window(context, target, panels.size(), [&](std::size_t index, int worker) {
    context.stop.check();
    const Panel& panel = panels[order[index]];
    std::optional<PanelBuffers>& mine = buffers[static_cast<std::size_t>(worker)];
    if (!mine) mine.emplace(PanelBuffers{Buffer(size), Buffer(size), Buffer(cast_size)});
    const detail::PanelBytes bytes = telling_of_copies(named, panel.source_tensor, [&] {
      return detail::copy_panel(source, target, panel, *holders.of(panel), *mine, on_read,
                                on_write);
    });
    context.progress.advance(bytes.read);
    const std::lock_guard lock(mutex);
    all.read += bytes.read;
    all.kept += bytes.kept;
    all.moved += bytes.moved;
  });
  context.progress.end();
  return all;
}

// Opens what was sealed, and insists that it says of itself what was proved.
std::unique_ptr<Reader> reopen(const Writer& target, const ExtentMap& proved) {
  std::unique_ptr<Reader> sealed = target.reopen();
  if (!sealed || !sealed->extents().same_places(proved)) {
    throw Error(
        Errc::internal,
        "cannot publish the checkpoint: the completed files place some piece elsewhere than "
        "they did when their bytes were counted");
  }
  return sealed;
}

// Re-reads every file, whose cached pages were dropped.
void read_back(Context& context, const Reader& sealed, const detail::Proof& proof) {
  Tally again(sealed.catalog().tensors, sealed.extents(), /*with_blocks=*/true);
  context.progress.begin("reading back", proof.target_bytes());
  sweep({context.pool, context.budget, context.progress, context.stop}, sealed,
        all_extents(sealed.extents()), again.tap());
  context.progress.end();
  proof.check_read_back(again);
}

std::int64_t count_replicas(const ExtentMap& map, std::span<const std::size_t> tensors) {
  std::int64_t count = 0;
  for (const std::size_t tensor : tensors) {
    count += std::ranges::any_of(
        map.of(tensor), [&](std::uint32_t number) { return map.extents()[number].copy > 0; });
  }
  return count;
}

// What was proved, for others to check.
std::string certificate_of(const Reader& source, const Writer& target,
                           std::span<const std::size_t> source_of, const detail::CastTally& cast,
                           const detail::Proof& proof, const TransferOptions& options) {
  std::vector<std::int64_t> rounded(source_of.size());
  for (std::size_t tensor = 0; tensor < rounded.size(); ++tensor) {
    rounded[tensor] = cast.rounded(tensor);
  }
  const Left nothing;
  const Left& left = options.left != nullptr ? *options.left : nothing;
  return certificate_text({.source = source.catalog(),
                           .target = target.catalog(),
                           .source_of = source_of,
                           .source_digests = proof.source_digests(),
                           .target_digests = proof.digests(),
                           .rounded = rounded,
                           .cast_reason = options.cast_reason,
                           .dropped = left.tensors,
                           .dropped_side = left.side,
                           .manifest = target.manifest_digest(),
                           .read_back = options.read_back});
}

}  // namespace

Outcome transfer(Context& context, const Reader& source, Writer& target,
                 const TransferOptions& options) {
  const std::vector<std::size_t> source_of =
      match(source.catalog(), target.catalog(), options.may_change);
  const ExtentMap on_medium = target.extents_on_medium();
  Passing passing(source, target, on_medium, source_of);
  std::vector<Panel> panels =
      detail::all_panels(source.catalog(), target.catalog(), target.extents(), source_of,
                         panel_bytes(context, passing.buffers()));
  const std::vector<std::uint32_t> order =
      detail::in_lanes(panels, target.extents(), context.pool.size());

  const detail::NamedSource named{source, options.source_name, options.copies_chosen};
  Outcome outcome;
  outcome.tensors = std::ssize(target.catalog().tensors);
  const detail::PanelBytes bytes = move_panels(context, named, target, panels, order, passing);
  outcome.read_bytes = bytes.read;
  outcome.kept_bytes = bytes.kept;
  outcome.moved_bytes = bytes.moved;
  outcome.written_bytes = passing.arrived.bytes();
  outcome.stored_bytes = passing.arrived.stored_bytes();
  outcome.cast_tensors = passing.cast.tensors();
  outcome.rounded_values = passing.cast.rounded();
  outcome.replicas_not_compared = count_replicas(source.extents(), source_of);

  const detail::Proof proof(named, target.catalog(), on_medium, source_of,
                            {passing.sent, passing.cast, passing.arrived});
  outcome.recorded = proof.recorded();
  target.seal(proof.digests(), proof.block_crcs());
  if (options.read_back) target.forget_caches();
  const std::unique_ptr<Reader> sealed = reopen(target, on_medium);
  proof.check_frames(sealed->extents(), passing.arrived);
  if (options.read_back) {
    read_back(context, *sealed, proof);
    outcome.proved = Proved::read_back;
  }
  outcome.certificate = certificate_of(source, target, source_of, passing.cast, proof, options);
  target.certify(outcome.certificate);
  context.stop.check();
  if (options.before_publish) options.before_publish();
  outcome.directory_synced = target.publish();
  return outcome;
}

}  // namespace remesh
