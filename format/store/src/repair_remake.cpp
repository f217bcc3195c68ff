#include "repair_remake.hpp"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/error.hpp"
#include "storage_plan.hpp"

namespace remesh::native {
namespace {

// How many more copies than were seen are thought possible: those that only lost shards had.
constexpr std::int64_t most_unseen_copies = 3;

using Piece = std::tuple<std::uint32_t, Box, std::uint32_t>;  // tensor, box, copy

std::vector<Piece> pieces_of(std::span<const Extent> extents) {
  std::vector<Piece> pieces;
  pieces.reserve(extents.size());
  for (const Extent& extent : extents) pieces.emplace_back(extent.tensor, extent.box, extent.copy);
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
  std::size_t extents = 0;
  const std::int64_t most =
      std::min(seen + most_unseen_copies, std::int64_t{catalog_.layout.mesh().num_ranks()});
  for (std::int64_t copies = seen; copies <= most; ++copies) {
    Plan plan = plan_storage(catalog_, copies);
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
    if (std::ranges::any_of(shard.extents, is_chunked)) return false;
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
      "how its rank stores its pieces is not what this remesh would have written (compressed "
      "shards, and those of other writers, cannot be made again)"};
  return std::ranges::any_of(plans_, [&](const Plan& plan) { return make(number, plan[number]); });
}

// The payload plays no part in it: the complement leaves it out.
bool Remaker::make(std::uint32_t number, ShardDraft draft) {
  ShardState& shard = shards_[number];
  Failure& failure = failures_[shard.name];
  const FileSystem::Path path = directory_ / shard.name;
  create_shard(files_, path, draft);
  std::vector<Digest> crcs;
  if (draft.header.file_bytes != shard.entry.size_bytes ||
      (shard.index && !same_index(draft.index, *shard.index))) {
    failure = {fmt::format("made again it would have {} bytes, but manifest.json records {}",
                           draft.header.file_bytes, shard.entry.size_bytes)};
  } else if (take_crcs(number, draft, crcs)) {
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

bool Remaker::take_crcs(std::uint32_t number, const ShardDraft& draft, std::vector<Digest>& crcs) {
  const ShardState& shard = shards_[number];
  if (shard.index) {
    crcs = shard.index->block_crcs;
    return true;
  }
  Failure failure{"some of what it held is stored nowhere else"};
  crcs.reserve(draft.index.block_crcs.size());
  for (const Extent& extent : draft.index.extents) {
    const ShardTensor& tensor = draft.index.tensors[extent.tensor];
    Extent global = extent;
    global.tensor = tensor.number;
    if (crcs_of(number, global, crcs)) continue;
    Finding finding;
    finding.id = "RM301";
    finding.file = shard.name;
    finding.tensor = tensor.desc.name;
    finding.box = extent.box;
    finding.message =
        fmt::format("{}: no other copy of {} is stored, and '{}' does not have it any more",
                    to_string(tensor.desc), to_string(extent.box), shard.name);
    failure.findings.push_back(std::move(finding));
  }
  if (failure.findings.empty()) return true;
  failures_[shard.name] = std::move(failure);
  return false;
}

// What another index records of a copy of the box; otherwise what the bytes that are there make.
bool Remaker::crcs_of(std::uint32_t number, const Extent& extent, std::vector<Digest>& crcs) {
  std::vector<std::byte> buffer;
  for (std::int64_t k = 0; k < num_blocks(extent); ++k) {
    const auto others = blocks_.elsewhere(extent.tensor, extent.box, number, extent.copy, k);
    if (!others.empty()) {
      crcs.push_back(blocks_.recorded(others.front()));
      continue;
    }
    const std::int64_t begin = k * ExtentMap::block_bytes;
    const BlockPlace place{extent.offset_bytes + begin,
                           std::min(ExtentMap::block_bytes, extent.length_bytes - begin)};
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
