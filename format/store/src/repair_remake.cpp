#include "repair_remake.hpp"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/error.hpp"
#include "shard_hdf5.hpp"
#include "shard_reader.hpp"
#include "storage_plan.hpp"

namespace remesh::native {
namespace {

// How many more copies than were seen are thought possible: those that only lost shards had.
constexpr std::int64_t most_unseen_copies = 3;

// Tensor, box, copy, and how it is cut into chunks.
using Piece = std::tuple<std::uint32_t, Box, std::uint32_t, int, Index>;

std::vector<Piece> pieces_of(std::span<const Extent> extents) {
  std::vector<Piece> pieces;
  pieces.reserve(extents.size());
  for (const Extent& each : extents) {
    pieces.emplace_back(each.tensor, each.box, each.copy, each.chunk_dim, each.chunk_size);
  }
  std::ranges::sort(pieces);
  return pieces;
}

std::vector<Extent> with_manifest_numbers(const ShardIndex& index) {
  std::vector<Extent> extents = index.extents;
  for (Extent& extent : extents) extent.tensor = index.tensors[extent.tensor].number;
  return extents;
}

std::size_t num_extents(std::span<const ShardDraft> plan) {
  std::size_t count = 0;
  for (const ShardDraft& draft : plan) count += draft.index.extents.size();
  return count;
}

// The frames of the same extent; null if there are none.
const Frame* frames_in(const ShardIndex& index, const ShardTensor& tensor, const Extent& wanted) {
  for (const Extent& extent : index.extents) {
    if (index.tensors[extent.tensor].number == tensor.number && extent.box == wanted.box &&
        extent.copy == wanted.copy && is_chunked(extent)) {
      return &index.frames[static_cast<std::size_t>(extent.first_frame)];
    }
  }
  return nullptr;
}

// The same apart from the CRCs of blocks.
bool same_index(ShardIndex made, const ShardIndex& known) {
  made.block_crcs = known.block_crcs;
  return encode(made) == encode(known);
}

}  // namespace

void Remaker::run(RepairReport& report) {
  const auto wanted = [](const ShardState& shard) { return shard.wants_remake(); };
  if (std::ranges::none_of(shards_, wanted)) return;
  find_plans();
  while (make_one_more()) blocks_.learn();
  for (const ShardState& shard : shards_) {
    if (shard.wants_remake()) report_lost(shard, report);
  }
}

void Remaker::find_plans() {
  std::int64_t seen = 1;
  for (const ShardState& shard : shards_) {
    for (const Extent& extent : shard.extents) {
      seen = std::max<std::int64_t>(seen, extent.copy + std::int64_t{1});
    }
  }
  find_plans(seen, /*in_chunks=*/false);
  find_plans(seen, /*in_chunks=*/true);
}

void Remaker::find_plans(std::int64_t least_copies, bool in_chunks) {
  std::size_t extents = 0;
  const std::int64_t most =
      std::min(least_copies + most_unseen_copies, std::int64_t{catalog_.layout.mesh().num_ranks()});
  for (std::int64_t copies = least_copies; copies <= most; ++copies) {
    Plan plan = plan_storage(catalog_, copies, in_chunks);
    if (num_extents(plan) == extents) return;  // there are no more holders
    extents = num_extents(plan);
    if (agrees(plan)) plans_.push_back(std::move(plan));
  }
}

bool Remaker::agrees(const Plan& plan) const {
  if (plan.size() != shards_.size()) return false;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const ShardState& shard = shards_[i];
    if (plan[i].header.rank != shard.entry.rank) return false;
    if (!shard.index) continue;
    if (pieces_of(with_manifest_numbers(plan[i].index)) != pieces_of(shard.extents)) return false;
  }
  return true;
}

bool Remaker::make_one_more() {
  for (std::uint32_t number = 0; number < shards_.size(); ++number) {
    if (shards_[number].wants_remake() && make(number)) return true;
  }
  return false;
}

bool Remaker::make(std::uint32_t number) {
  ShardState& shard = shards_[number];
  failures_[shard.name] = {
      "how its rank stores its pieces is not what this remesh would have written (shards of other "
      "writers cannot be made again)"};
  return std::ranges::any_of(plans_, [&](const Plan& plan) { return make(number, plan[number]); });
}

// The payload plays no part in it: the complement leaves it out.
bool Remaker::make(std::uint32_t number, ShardDraft draft) {
  ShardState& shard = shards_[number];
  Failure& failure = failures_[shard.name];
  const FileSystem::Path path = directory_ / shard.name;
  create_shard(files_, path, draft);
  std::vector<Digest> crcs;
  if (fill(number, path, draft, crcs)) {
    const auto file = files_.open_for_writing(path);
    const Digest made = seal_shard(*file, draft, crcs, parse_save_id(catalog_.save_id));
    if (made == shard.entry.header_crc) {
      shard.header = draft.header;
      shard.take_index(std::move(draft.index));
      shard.remade = true;
      shard.mends.push_back({.file = shard.name,
                             .bytes = {0, shard.entry.size_bytes},
                             .by = MendedBy::rule,
                             .how = fmt::format("header, index and HDF5 metadata made again, "
                                                "since {}; manifest.json records the same header",
                                                shard.why_remake)});
      return true;
    }
    failure = {
        fmt::format("made again its header hashes to {}, but manifest.json records {}: its "
                    "payload is damaged too, or it was written by other rules",
                    to_string(made), to_string(shard.entry.header_crc))};
  }
  files_.remove_all(path);
  return false;
}

// Gives the draft its frames, and finds the CRCs of its blocks; false, and why, if it cannot.
bool Remaker::fill(std::uint32_t number, const FileSystem::Path& path, ShardDraft& draft,
                   std::vector<Digest>& crcs) {
  const ShardState& shard = shards_[number];
  const auto known = index_of(shard, draft);
  if (!take_frames(number, path, draft, known)) return false;
  if (draft.header.file_bytes != shard.entry.size_bytes ||
      (shard.index && !same_index(draft.index, *shard.index))) {
    failures_[shard.name] = {
        fmt::format("made again it would have {} bytes, but manifest.json records {}",
                    draft.header.file_bytes, shard.entry.size_bytes)};
    return false;
  }
  if (!known || !same_index(draft.index, *known)) return take_crcs(number, draft, crcs);
  crcs = known->block_crcs;
  return true;
}

// Where the header is lost, the index may still be there: it lies where it will be written again.
std::optional<ShardIndex> Remaker::index_of(const ShardState& shard,
                                            const ShardDraft& draft) const {
  if (shard.index || !draft.frames || shard.found_bytes < draft.header.index.end) {
    return shard.index;
  }
  const ByteRange place = draft.header.index;
  std::vector<std::byte> bytes(static_cast<std::size_t>(place.end - place.begin));
  ShardHeader header = draft.header;
  header.file_bytes = shard.entry.size_bytes;
  header.sealed = true;
  try {
    files_.open(shard.path)->read_at(place.begin, bytes);
    ShardIndex index = parse_index(bytes, header);
    const bool agrees =
        pieces_of(with_manifest_numbers(index)) == pieces_of(with_manifest_numbers(draft.index));
    return agrees ? std::optional(std::move(index)) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;  // it is lost, too
  }
}

bool Remaker::take_frames(std::uint32_t number, const FileSystem::Path& path, ShardDraft& draft,
                          const std::optional<ShardIndex>& known) {
  if (!draft.frames) return true;
  std::vector<Frame> frames(draft.index.frames.size());
  std::vector<Finding> lost;
  std::int64_t end = draft.frames->frames_begin;
  for (Extent extent : draft.index.extents) {
    if (!is_chunked(extent)) continue;
    const ShardTensor& tensor = draft.index.tensors[extent.tensor];
    const auto own = std::span(frames).subspan(static_cast<std::size_t>(extent.first_frame),
                                               static_cast<std::size_t>(num_blocks(extent)));
    if (const Frame* const there = known ? frames_in(*known, tensor, extent) : nullptr) {
      std::copy_n(there, own.size(), own.begin());
      end = own.back().offset_bytes + own.back().length_bytes;
      continue;
    }
    extent.tensor = tensor.number;
    if (!frames_of(number, extent, end, own)) {
      lost.push_back(not_stored(shards_[number], tensor, extent.box));
    }
  }
  if (!lost.empty()) return lose(shards_[number], std::move(lost));
  const auto file = files_.open_for_writing(path);
  // As if they were in it.
  file->write_at(end - 1, std::vector<std::byte>(1));
  finish_frames(*file, path, draft, frames);
  return true;
}

// They have the lengths that they have in another copy, and follow each other from `end` on.
bool Remaker::frames_of(std::uint32_t number, const Extent& extent, std::int64_t& end,
                        std::span<Frame> frames) const {
  for (std::size_t k = 0; k < frames.size(); ++k) {
    const auto others = blocks_.elsewhere(extent.tensor, extent.box, number, extent.copy,
                                          static_cast<std::int64_t>(k));
    if (others.empty()) return false;
    frames[k] = blocks_.frame(others.front());
    frames[k].offset_bytes = next_offset(end, frames[k].length_bytes);
    end = frames[k].offset_bytes + frames[k].length_bytes;
  }
  return true;
}

Finding Remaker::not_stored(const ShardState& shard, const ShardTensor& tensor,
                            const Box& box) const {
  Finding finding;
  finding.id = "RM301";
  finding.file = shard.name;
  finding.tensor = tensor.desc.name;
  finding.box = box;
  finding.message =
      fmt::format("{}: no other copy of {} is stored, and '{}' does not have it any more",
                  to_string(tensor.desc), to_string(box), shard.name);
  return finding;
}

bool Remaker::lose(const ShardState& shard, std::vector<Finding> findings) {
  failures_[shard.name] = {"some of what it held is stored nowhere else", std::move(findings)};
  return false;
}

bool Remaker::take_crcs(std::uint32_t number, const ShardDraft& draft, std::vector<Digest>& crcs) {
  std::vector<Finding> lost;
  crcs.reserve(draft.index.block_crcs.size());
  for (const Extent& extent : draft.index.extents) {
    if (crcs_of(number, draft.index, extent, crcs)) continue;
    lost.push_back(not_stored(shards_[number], draft.index.tensors[extent.tensor], extent.box));
  }
  return lost.empty() || lose(shards_[number], std::move(lost));
}

// What another index records of a copy of the box; otherwise what the bytes that are there make.
bool Remaker::crcs_of(std::uint32_t number, const ShardIndex& index, const Extent& extent,
                      std::vector<Digest>& crcs) {
  const std::uint32_t tensor = index.tensors[extent.tensor].number;
  std::vector<std::byte> buffer;
  for (std::int64_t k = 0; k < num_blocks(extent); ++k) {
    const auto others = blocks_.elsewhere(tensor, extent.box, number, extent.copy, k);
    if (!others.empty()) {
      crcs.push_back(blocks_.recorded(others.front()));
      continue;
    }
    const BlockPlace place = place_of_block(index, extent, k);
    buffer.resize(static_cast<std::size_t>(place.length_bytes));
    if (!blocks_.read(number, place, buffer)) return false;
    crcs.push_back(digest_of(buffer));
  }
  return true;
}

void Remaker::report_lost(const ShardState& shard, RepairReport& report) const {
  const Failure& failure = failures_.at(shard.name);
  Finding finding;
  finding.id = shard.id;
  finding.file = shard.name;
  finding.message =
      fmt::format("cannot repair '{}': {}; {}", shard.path.string(), shard.why_remake, failure.why);
  report.lost.push_back(std::move(finding));
  report.lost.insert(report.lost.end(), failure.findings.begin(), failure.findings.end());
}

}  // namespace remesh::native
