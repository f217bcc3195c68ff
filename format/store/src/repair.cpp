#include "remesh/store/repair.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/error.hpp"
#include "remesh/store/certificate.hpp"
#include "remesh/store/native_store.hpp"
#include "remesh/store/staging.hpp"
#include "repair_blocks.hpp"
#include "repair_burst.hpp"
#include "repair_copy.hpp"
#include "repair_documents.hpp"
#include "repair_mended.hpp"
#include "repair_rebuild.hpp"
#include "repair_remake.hpp"
#include "repair_scratch.hpp"
#include "repair_survey.hpp"

namespace remesh {
namespace {

using native::BlockId;
using native::BlockPlace;
using native::RepairBlocks;
using native::ShardState;
using Path = FileSystem::Path;

class Repair {
 public:
  Repair(FileSystem& files, Path source, const Path& destination, const RepairOptions& options,
         const SweepContext& machine)
      : files_(files), source_(std::move(source)), machine_(machine) {
    if (options.dry_run) {
      if (!destination.empty()) refuse_existing(files, destination);
    } else {
      staging_.emplace(files, destination, options.job_id,
                       options.discard_leftovers ? Leftovers::discard : Leftovers::refuse);
    }
  }

  RepairReport run();

 private:
  void examine();
  void examine_shards();
  void remake_shards();
  void rebuild();
  bool rebuild_from(const native::Survey& survey);
  void check_payload();
  void check_block(const BlockId& block, std::span<std::byte> buffer);
  Mend mend_of(const BlockId& block, const RepairBlocks::Found& found) const;
  Finding loss_of(const BlockId& block, std::span<std::byte> buffer) const;
  void note_extra_files();
  void note_extras_in(const Path& directory, const std::string& prefix,
                      const std::set<std::string>& known);
  std::int64_t stored_bytes() const;
  void write();

  FileSystem& files_;
  const Path source_;
  const SweepContext& machine_;
  std::optional<Staging> staging_;  // nothing in a dry run
  native::Documents documents_;
  std::vector<ShardState> shards_;
  RepairBlocks blocks_{files_, shards_};
  std::vector<BlockId> mended_blocks_;
  RepairReport report_;
  std::mutex mutex_;
};

// A manifest that nothing vouches for any more is rebuilt from the shards, if all of them are
// whole.
void Repair::rebuild() {
  std::vector<Finding> why;
  auto survey = native::survey_shards(files_, source_, why);
  if (survey) {
    shards_ = survey->shards;
    documents_.manifest.catalog.tensors = survey->tensors;
    report_.tensors = std::ssize(survey->tensors);
    blocks_.learn();
    check_payload();
    if (report_.lost.empty() && rebuild_from(*survey)) return;
  }
  report_.lost.insert(report_.lost.begin(), *documents_.why_lost);
  report_.lost.insert(report_.lost.end(), why.begin(), why.end());
}

bool Repair::rebuild_from(const native::Survey& survey) {
  native::MendedFiles mended(files_, shards_, blocks_, mended_blocks_);
  const auto digests = native::digests_of(mended, shards_, survey.tensors, machine_);
  return native::rebuild_manifest({.files = mended,
                                   .root = source_,
                                   .ranks = survey.ranks,
                                   .save_id = survey.save_id,
                                   .stored = survey.stored,
                                   .tensors = survey.tensors,
                                   .digests = digests,
                                   .machine = machine_},
                                  shards_, documents_, report_);
}

void Repair::remake_shards() {
  native::ScratchFiles scratch(files_);
  FileSystem& files = staging_ ? files_ : scratch;
  const Path directory = staging_ ? staging_->directory() : source_ / "made again";
  native::Remaker(files, directory, documents_.manifest.catalog, shards_, blocks_).run(report_);
}

void Repair::examine() {
  documents_ = native::repair_documents(files_, source_, report_);
  if (documents_.why_lost) return rebuild();
  report_.tensors = std::ssize(documents_.manifest.catalog.tensors);
  examine_shards();
  remake_shards();
  check_payload();
}

void Repair::examine_shards() {
  const auto& entries = documents_.manifest.shards;
  const Index ranks = documents_.manifest.catalog.layout.mesh().num_ranks();
  shards_.resize(entries.size());
  machine_.pool.run(entries.size(), [&](std::size_t i, int) {
    machine_.stop.check();
    shards_[i] = native::examine_shard(files_, source_, entries[i], ranks);
  });
  blocks_.learn();
}

Mend Repair::mend_of(const BlockId& block, const RepairBlocks::Found& found) const {
  const BlockPlace place = blocks_.place(block);
  const BlockPlace from = blocks_.place(found.from);
  const ShardState& source = shards_[found.from.shard];
  const Extent& extent = blocks_.extent(block);
  Mend mend{.file = shards_[block.shard].name,
            .bytes = {place.offset_bytes, place.offset_bytes + place.length_bytes}};
  mend.tensor = documents_.manifest.catalog.tensors[extent.tensor].name;
  mend.box = extent.box;
  mend.by = found.from == block ? MendedBy::flip : MendedBy::copy;
  if (mend.by == MendedBy::copy) {
    mend.how = fmt::format("copied from bytes [{}, {}) of {}", from.offset_bytes,
                           from.offset_bytes + from.length_bytes, source.name);
  }
  if (found.undone) {
    if (!mend.how.empty()) mend.how += ", with ";
    mend.how += native::flipped_back(*found.undone, from.offset_bytes);
  }
  return mend;
}

Finding Repair::loss_of(const BlockId& block, std::span<std::byte> buffer) const {
  const BlockPlace place = blocks_.place(block);
  const Extent& extent = blocks_.extent(block);
  const TensorDesc& desc = documents_.manifest.catalog.tensors[extent.tensor];
  const ShardState& shard = shards_[block.shard];
  const auto others =
      blocks_.elsewhere(extent.tensor, extent.box, block.shard, extent.copy, block.k);
  Finding finding;
  finding.id = "RM207";
  finding.file = shard.name;
  finding.bytes = ByteRange{place.offset_bytes, place.offset_bytes + place.length_bytes};
  finding.tensor = desc.name;
  finding.box = extent.box;
  finding.expected = to_string(blocks_.recorded(block));
  const bool there = blocks_.read(block.shard, place, buffer);
  if (there) finding.found = to_string(digest_of(buffer));
  finding.message = fmt::format(
      "{}: cannot repair bytes [{}, {}) of {}, part of {}: {}, but {} is recorded; no single burst "
      "explains it, and {}",
      to_string(desc), finding.bytes->begin, finding.bytes->end, shard.name, to_string(extent.box),
      there ? fmt::format("they hash to {}", finding.found) : "they are not there",
      finding.expected,
      others.empty() ? "no other copy is stored" : "no other copy has the recorded bytes");
  finding.next_step = "restore this file from elsewhere, or go back to an earlier checkpoint";
  return finding;
}

void Repair::check_block(const BlockId& block, std::span<std::byte> buffer) {
  const auto found = blocks_.fetch(block, buffer);
  if (found && found->from == block && !found->undone) return;
  if (found) {
    Mend mend = mend_of(block, *found);
    const std::lock_guard lock(mutex_);
    mended_blocks_.push_back(block);
    report_.mended.push_back(std::move(mend));
  } else {
    Finding loss = loss_of(block, buffer);
    const std::lock_guard lock(mutex_);
    report_.lost.push_back(std::move(loss));
  }
}

void Repair::check_payload() {
  std::vector<BlockId> all;
  std::int64_t bytes = 0;
  for (std::uint32_t shard = 0; shard < shards_.size(); ++shard) {
    for (const BlockId& block : native::blocks_of(shard, shards_[shard])) {
      all.push_back(block);
      bytes += blocks_.place(block).length_bytes;
    }
  }
  machine_.progress.begin("checking", bytes);
  native::BlockBuffers buffers(machine_);
  machine_.pool.run(all.size(), [&](std::size_t index, int worker) {
    machine_.stop.check();
    const std::int64_t length = blocks_.place(all[index]).length_bytes;
    check_block(all[index], buffers.of(worker, length));
    machine_.progress.advance(length);
  });
  machine_.progress.end();
  for (const ShardState& shard : shards_) {
    report_.mended.insert(report_.mended.end(), shard.mends.begin(), shard.mends.end());
  }
}

void Repair::note_extras_in(const Path& directory, const std::string& prefix,
                            const std::set<std::string>& known) {
  for (const Entry& entry : files_.list(directory)) {
    const std::string name = prefix + entry.name;
    if (known.contains(name)) continue;
    Finding finding;
    finding.id = "RM108";
    finding.severity = Severity::warn;
    finding.file = name;
    finding.message = fmt::format(
        "'{}' is not listed by manifest.json; it is not part of the checkpoint, and left out",
        (source_ / name).string());
    report_.notes.push_back(std::move(finding));
  }
}

void Repair::note_extra_files() {
  const std::string side{native::side_directory};
  std::set<std::string> known{std::string(native::manifest_name), std::string(native::commit_name),
                              std::string(certificate_name), std::string(native::signature_name)};
  for (const ShardState& shard : shards_) known.insert(shard.name);
  const auto entry = files_.look(source_ / side);
  if (entry && entry->kind == EntryKind::directory) {
    known.insert(side);
    for (const SideFile& file : documents_.manifest.catalog.side) {
      known.insert(fmt::format("{}/{}", side, file.name));
    }
    note_extras_in(source_ / side, side + "/", known);
  }
  note_extras_in(source_, "", known);
}

std::int64_t Repair::stored_bytes() const {
  std::int64_t bytes = 0;
  for (const ShardState& shard : shards_) bytes += shard.entry.size_bytes;
  return bytes;
}

void Repair::write() {
  staging_->check_room(stored_bytes());
  std::int64_t payload = 0;
  for (const ShardState& shard : shards_) {
    for (const Extent& extent : shard.extents) payload += extent.length_bytes;
  }
  machine_.progress.begin("writing", payload);
  for (std::uint32_t shard = 0; shard < shards_.size(); ++shard) {
    native::write_shard(files_, staging_->directory(), shard, shards_[shard], blocks_, machine_);
  }
  machine_.progress.end();
  native::write_documents(files_, staging_->directory(), documents_);
  machine_.progress.begin("proving", payload);
  native::prove(files_, staging_->directory(), documents_, machine_);
  machine_.progress.end();
  report_.written_bytes = stored_bytes();
  report_.directory_synced = staging_->publish();
  report_.written = true;
}

RepairReport Repair::run() {
  examine();
  if (report_.lost.empty()) note_extra_files();
  std::ranges::stable_sort(report_.mended, {},
                           [](const Mend& mend) { return std::tie(mend.file, mend.bytes.begin); });
  std::ranges::stable_sort(report_.lost, {}, [](const Finding& finding) {
    return std::tuple(finding.file, finding.bytes ? finding.bytes->begin : -1);
  });
  if (!report_.lost.empty()) return std::move(report_);
  if (!report_.mended.empty()) {
    if (staging_) write();
  } else {
    // What is not damaged may still be wrong; that is no matter of mending.
    StrictFindings findings;
    open_native(files_, source_, findings);
  }
  return std::move(report_);
}

}  // namespace

std::string_view to_string(MendedBy by) noexcept {
  switch (by) {
    case MendedBy::flip:
      return "flip";
    case MendedBy::copy:
      return "copy";
    case MendedBy::rule:
      return "rule";
    case MendedBy::record:
      return "record";
    case MendedBy::cut:
      return "cut";
  }
  return "flip";
}

RepairReport repair_native(FileSystem& files, const FileSystem::Path& source,
                           const FileSystem::Path& destination, const RepairOptions& options,
                           const SweepContext& machine) {
  if (!looks_native(files, source)) {
    throw Error(Errc::not_found,
                fmt::format("cannot repair '{}': it is no remesh checkpoint: it has no "
                            "manifest.json, COMMIT or shards",
                            source.string()),
                "RM101");
  }
  return Repair(files, source, destination, options, machine).run();
}

}  // namespace remesh
