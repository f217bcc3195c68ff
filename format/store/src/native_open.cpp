#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "complaints.hpp"
#include "extent_map_builder.hpp"
#include "manifest.hpp"
#include "placement_check.hpp"
#include "remesh/core/error.hpp"
#include "remesh/json/events.hpp"
#include "remesh/store/certificate.hpp"
#include "remesh/store/native_store.hpp"
#include "shard_reader.hpp"

namespace remesh {
namespace {

using native::Complaints;
using native::Manifest;
using native::ShardEntry;
using native::ShardHeader;
using native::ShardIndex;
using Path = FileSystem::Path;

const std::string manifest_file{native::manifest_name};
const std::string commit_file{native::commit_name};
const std::string side_prefix = std::string(native::side_directory) + "/";

constexpr std::int64_t most_commit_bytes = 4096;

bool is_shard_name(const std::string& name) {
  return name.starts_with("shard-") && name.ends_with(".h5");
}

class Opening {
 public:
  Opening(const FileSystem& files, const Path& root, Findings& findings)
      : files_(files), complaints_(findings, root) {}

  std::unique_ptr<Reader> run() {
    auto manifest = read_manifest();
    if (!manifest) return nullptr;
    catalog_ = std::move(manifest->catalog);
    save_id_ = native::parse_save_id(catalog_.save_id);
    for (const ShardEntry& shard : manifest->shards) add_shard(shard);
    for (const SideFile& side : catalog_.side) add_side(side);
    add_certificate();
    report_extra_files();
    OpenCheckpoint checkpoint{std::move(catalog_), map_.take(), std::move(paths_), {}};
    native::check_placement(checkpoint.catalog, checkpoint.extents, unread_ranks_, complaints_);
    for (const SideFile& side : checkpoint.catalog.side) {
      checkpoint.side_paths.push_back(complaints_.path(side_prefix + side.name));
    }
    return make_reader(files_, std::move(checkpoint));
  }

 private:
  std::optional<Manifest> read_manifest();
  std::optional<std::string> read_commit() const;

  void add_shard(const ShardEntry& entry);
  void read_shard(const ShardEntry& entry, std::uint32_t number, const std::string& name);
  bool belongs(const ShardEntry& entry, const ShardHeader& header, const std::string& name) const;
  void report_misplaced(const ShardEntry& entry, const ShardHeader& header,
                        const std::string& name) const;
  bool is_in_its_place(const ShardHeader& header) const;
  bool agrees(const ShardIndex& index, const std::string& name) const;
  bool check_size(const std::string& name, std::int64_t found, std::int64_t expected) const;
  std::optional<Entry> find_regular(const std::string& name) const;

  void add_side(const SideFile& side);
  void add_certificate();
  void report_extra_files() const;
  void report_extras_in(const Path& directory, const std::string& prefix) const;

  const FileSystem& files_;
  Complaints complaints_;
  Catalog catalog_;
  native::SaveId save_id_{};
  native::ExtentMapBuilder map_;
  std::vector<Path> paths_;
  std::set<std::string> known_{manifest_file, commit_file, std::string(native::signature_name)};
  std::vector<Rank> unread_ranks_;
};

std::optional<Manifest> Opening::read_manifest() {
  if (!looks_native(files_, complaints_.root())) {
    Finding finding;
    finding.id = "RM101";
    finding.message = fmt::format(
        "cannot open '{}': it is not a remesh checkpoint: it has no manifest.json, COMMIT or "
        "shards",
        complaints_.root().string());
    complaints_.add(std::move(finding));
    return std::nullopt;
  }
  const auto commit = read_commit();
  auto text = complaints_.attempt(manifest_file, [&] {
    return read_text(files_, complaints_.path(manifest_file), native::most_manifest_bytes,
                     json_padding_bytes);
  });
  if (!text) return std::nullopt;
  // Before a byte of the manifest is parsed.
  if (const std::string expected = native::commit_line(*text); commit && *commit != expected) {
    complaints_.add("RM103", commit_file,
                    fmt::format("it records {:?}, but manifest.json has {:?}; one of the two was "
                                "changed after it was written",
                                *commit, expected));
  }
  const std::size_t size = text->size();
  text->append(json_padding_bytes, ' ');
  return complaints_.attempt(manifest_file, [&] {
    return native::parse_manifest(std::string_view(*text).substr(0, size), json_padding_bytes);
  });
}

std::optional<std::string> Opening::read_commit() const {
  const auto entry = files_.look(complaints_.path(commit_file));
  if (!entry) {
    complaints_.add("RM105", commit_file,
                    "there is none; what has no COMMIT was never finished, and is no checkpoint");
    return std::nullopt;
  }
  if (entry->size_bytes > most_commit_bytes) {
    complaints_.add("RM103", commit_file,
                    fmt::format("it has {} bytes, but is one line", entry->size_bytes));
    return std::nullopt;
  }
  return complaints_.attempt(commit_file, [&] {
    return read_text(files_, complaints_.path(commit_file), most_commit_bytes);
  });
}

std::optional<Entry> Opening::find_regular(const std::string& name) const {
  const auto found = complaints_.attempt(name, [&] { return files_.look(complaints_.path(name)); });
  if (!found) return std::nullopt;
  const std::optional<Entry>& entry = *found;
  if (!entry) {
    complaints_.add("RM203", name, "manifest.json lists it, but it is not there");
  } else if (entry->kind != EntryKind::regular) {
    complaints_.add("RM604", name, "it is not a regular file");
    return std::nullopt;
  }
  return entry;
}

bool Opening::check_size(const std::string& name, std::int64_t found, std::int64_t expected) const {
  if (found < expected) {
    complaints_.add("RM202", name,
                    fmt::format("it has {} bytes, but manifest.json records {}; it was cut short",
                                found, expected),
                    ByteRange{found, expected});
  } else if (found > expected) {
    complaints_.add("RM208", name,
                    fmt::format("it has {} bytes, but manifest.json records {}; something was "
                                "appended to it",
                                found, expected),
                    ByteRange{expected, found});
  }
  return found >= expected;
}

// A shard that cannot be used keeps its number: the reader's files are those of the manifest.
void Opening::add_shard(const ShardEntry& entry) {
  const std::string name = native::shard_name(entry.rank, catalog_.layout.mesh().num_ranks());
  known_.insert(name);
  const std::uint32_t number = map_.add_file(name, entry.size_bytes);
  paths_.push_back(complaints_.path(name));
  unread_ranks_.push_back(entry.rank);
  if (find_regular(name)) read_shard(entry, number, name);
}

// Identity before size: a shard of another checkpoint may well have another length.
void Opening::read_shard(const ShardEntry& entry, std::uint32_t number, const std::string& name) {
  const Path path = complaints_.path(name);
  const auto file = complaints_.attempt(name, [&] { return files_.open(path); });
  if (!file) return;
  const auto read = native::read_header(**file, path, name, complaints_.findings());
  if (!read || !belongs(entry, read->header, name)) return;
  if (read->crc != entry.header_crc || read->header.file_bytes != entry.size_bytes) {
    complaints_.add("RM207", name,
                    fmt::format("its header hashes to {}, but manifest.json records {}",
                                to_string(read->crc), to_string(entry.header_crc)),
                    ByteRange{0, native::header_bytes});
    return;
  }
  if (!check_size(name, (*file)->size_bytes(), entry.size_bytes) &&
      (*file)->size_bytes() < read->header.index.end) {
    return;
  }
  auto index = native::read_index(**file, read->header, path, name, complaints_.findings());
  if (!index || !agrees(*index, name)) return;
  map_.add_shard(number, read->header, std::move(*index));
  unread_ranks_.pop_back();
}

bool Opening::belongs(const ShardEntry& entry, const ShardHeader& header,
                      const std::string& name) const {
  const Index ranks = catalog_.layout.mesh().num_ranks();
  if (!header.sealed) {
    complaints_.add("RM105", name, "it was never finished");
    return false;
  }
  if (header.save_id != save_id_) {
    complaints_.add("RM109", name,
                    fmt::format("it is a shard of another save than {}, which manifest.json "
                                "describes; two checkpoints were mixed",
                                catalog_.save_id));
    return false;
  }
  if (header.rank != entry.rank || header.ranks != ranks) {
    report_misplaced(entry, header, name);
    return false;
  }
  return true;
}

// A name that is exchanged back mends it, unless the file was copied over the one that is missed.
void Opening::report_misplaced(const ShardEntry& entry, const ShardHeader& header,
                               const std::string& name) const {
  const std::string found =
      fmt::format("it holds rank {} of {}, but its name says rank {} of {}", header.rank,
                  header.ranks, entry.rank, catalog_.layout.mesh().num_ranks());
  if (is_in_its_place(header)) {
    complaints_.add("RM213", name,
                    fmt::format("{}; it is '{}' once more, copied over what was here", found,
                                native::shard_name(header.rank, header.ranks)));
  } else {
    complaints_.add("RM204", name, fmt::format("{}; it was renamed", found));
  }
}

// Whether the file that is named for a header's rank has that header.
bool Opening::is_in_its_place(const ShardHeader& header) const {
  const std::string name = native::shard_name(header.rank, header.ranks);
  CollectedFindings ignored;
  try {
    const Path path = complaints_.path(name);
    const auto read = native::read_header(*files_.open(path), path, name, ignored);
    return read && read->header == header;
  } catch (const Error&) {
    return false;  // there is none, which is told where it is looked for
  }
}

bool Opening::agrees(const ShardIndex& index, const std::string& name) const {
  for (const native::ShardTensor& tensor : index.tensors) {
    if (tensor.number < catalog_.tensors.size() && catalog_.tensors[tensor.number] == tensor.desc) {
      continue;
    }
    complaints_.add("RM303", name,
                    fmt::format("it has tensor {} as {}, but manifest.json lists {}", tensor.number,
                                to_string(tensor.desc),
                                tensor.number < catalog_.tensors.size()
                                    ? to_string(catalog_.tensors[tensor.number])
                                    : fmt::format("{} tensors", catalog_.tensors.size())));
    return false;
  }
  return true;
}

void Opening::add_side(const SideFile& side) {
  const std::string name = side_prefix + side.name;
  known_.insert(name);
  const std::uint32_t number = map_.add_file(name, side.size_bytes);
  paths_.push_back(complaints_.path(name));
  if (const auto entry = find_regular(name)) check_size(name, entry->size_bytes, side.size_bytes);
  map_.add_guard({number, {{0, side.size_bytes}}, side.digest, "side file"});
}

// It is no part of the checkpoint: damage to it keeps nobody from reading, but a judge tells of it.
void Opening::add_certificate() {
  const std::string name{certificate_name};
  const auto entry = files_.look(complaints_.path(name));
  if (!entry || entry->kind != EntryKind::regular) return;
  known_.insert(name);
  const std::uint32_t number = map_.add_file(name, entry->size_bytes);
  paths_.push_back(complaints_.path(name));
  constexpr auto end_bytes = static_cast<std::int64_t>(certificate_end_bytes);
  std::string end(certificate_end_bytes, '\0');
  if (entry->size_bytes >= end_bytes) {
    files_.open(complaints_.path(name))
        ->read_at(entry->size_bytes - end_bytes, std::as_writable_bytes(std::span(end)));
  }
  if (const auto digest = parse_certificate_end(end)) {
    map_.add_guard({number, {{0, entry->size_bytes - end_bytes}}, *digest, "certificate"});
  } else {
    // Whatever it holds is not what it should be.
    const std::string text = read_text(files_, complaints_.path(name), native::most_manifest_bytes);
    const Digest found = digest_of(std::as_bytes(std::span(text)));
    map_.add_guard({number, {{0, entry->size_bytes}}, Digest{~found.value}, "certificate"});
  }
}

void Opening::report_extra_files() const {
  report_extras_in(complaints_.root(), "");
  const std::string directory{native::side_directory};
  const auto side = files_.look(complaints_.path(directory));
  if (side && side->kind == EntryKind::directory) {
    report_extras_in(complaints_.path(directory), side_prefix);
  } else if (side) {
    complaints_.add("RM604", directory, "it is not a directory");
  }
}

void Opening::report_extras_in(const Path& directory, const std::string& prefix) const {
  for (const Entry& entry : files_.list(directory)) {
    const std::string name = prefix + entry.name;
    if (known_.contains(name) || name == native::side_directory) continue;
    Finding finding;
    finding.id = "RM108";
    finding.severity = Severity::warn;
    finding.message = fmt::format(
        "'{}' is not listed by manifest.json; it is not part of the "
        "checkpoint",
        complaints_.path(name).string());
    finding.file = name;
    complaints_.add(std::move(finding));
  }
}

}  // namespace

bool looks_native(const FileSystem& files, const FileSystem::Path& path) {
  const auto directory = files.look(path / ".");  // follows a link to a directory
  if (!directory || directory->kind != EntryKind::directory) return false;
  if (files.look(path / manifest_file) || files.look(path / commit_file)) return true;
  return std::ranges::any_of(files.list(path),
                             [](const Entry& entry) { return is_shard_name(entry.name); });
}

std::unique_ptr<Reader> open_native(const FileSystem& files, const FileSystem::Path& path,
                                    Findings& findings) {
  return Opening(files, path, findings).run();
}

}  // namespace remesh
