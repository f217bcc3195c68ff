#include "repair_survey.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "little_endian.hpp"
#include "remesh/core/error.hpp"
#include "remesh/schema/coverage.hpp"
#include "repair_burst.hpp"
#include "shard_reader.hpp"
#include "shard_writer.hpp"

namespace remesh::native {
namespace {

constexpr std::size_t most_holes_to_report = 16;

std::string_view chars_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class Surveying {
 public:
  Surveying(const FileSystem& files, FileSystem::Path root, std::vector<Finding>& lost)
      : files_(files), root_(std::move(root)), lost_(lost) {}

  std::optional<Survey> run();

 private:
  void add(const char* id, const std::string& file, const std::string& why);
  void look_at(const std::string& name, const ShardPlace& place);
  std::optional<ShardHeader> read_header(const std::string& name, ShardEntry& entry);
  bool is_of_its_name(const ShardHeader& header, const std::string& name, const ShardPlace& place);
  void check_one_save();
  void collect_tensors();
  void take_tensor(const ShardState& shard, const ShardTensor& tensor);
  void check_coverage();
  void check_coverage(std::size_t tensor, const std::vector<Box>& boxes);

  const FileSystem& files_;
  const FileSystem::Path root_;
  std::vector<Finding>& lost_;
  Survey out_;
  std::map<std::uint32_t, TensorDesc> known_;
  std::vector<std::vector<Box>> firsts_;  // of copies 0, for each tensor
};

void Surveying::add(const char* id, const std::string& file, const std::string& why) {
  Finding finding;
  finding.id = id;
  finding.file = file;
  finding.message = fmt::format("cannot rebuild manifest.json: '{}': {}",
                                file.empty() ? root_.string() : (root_ / file).string(), why);
  lost_.push_back(std::move(finding));
}

// Nothing but the header vouches for the header: either its CRC was changed, or what it is of.
std::optional<ShardHeader> Surveying::read_header(const std::string& name, ShardEntry& entry) {
  const std::unique_ptr<File> file = files_.open(root_ / name);
  if (file->size_bytes() < header_bytes) {
    add("RM202", name,
        fmt::format("it has {} bytes, but a header alone has {}", file->size_bytes(),
                    header_bytes));
    return std::nullopt;
  }
  std::vector<std::byte> block(static_cast<std::size_t>(header_bytes));
  file->read_at(0, block);
  const auto body = std::span(block).first(header_field::header_crc);
  const Digest recorded{load<std::uint64_t>(block, header_field::header_crc)};
  entry.header_crc = recorded;
  if (const Digest found = header_crc(block); found != recorded && !undo_burst(body, recorded)) {
    std::vector<std::byte> right = block;
    store(right, header_field::header_crc, found.value);
    if (!differ_by_burst(chars_of(block), chars_of(right))) {
      add("RM207", name,
          fmt::format("its header hashes to {}, but records {}; no single burst explains it",
                      to_string(found), to_string(recorded)));
      return std::nullopt;
    }
    entry.header_crc = found;
    block = std::move(right);
  }
  return parse_header(block);
}

bool Surveying::is_of_its_name(const ShardHeader& header, const std::string& name,
                               const ShardPlace& place) {
  if (!header.sealed) {
    add("RM105", name, "it was never finished");
    return false;
  }
  if (header.rank == place.rank && header.ranks == place.ranks) return true;
  add("RM204", name,
      fmt::format("it holds rank {} of {}, but its name says rank {} of {}", header.rank,
                  header.ranks, place.rank, place.ranks));
  return false;
}

// A medium that does not give its bytes back has lost them. What this user may not read is not
// lost.
void Surveying::look_at(const std::string& name, const ShardPlace& place) {
  try {
    ShardEntry entry;
    const auto header = read_header(name, entry);
    if (!header || !is_of_its_name(*header, name, place)) return;
    entry.rank = header->rank;
    entry.size_bytes = header->file_bytes;
    ShardState shard = examine_shard(files_, root_, entry, header->ranks);
    if (shard.wants_remake()) return add(shard.id, name, shard.why_remake);
    out_.shards.push_back(std::move(shard));
  } catch (const Error& error) {
    if (error.code() != Errc::io || error.id() == "RM706") throw;
    add("RM703", name, error.what());
  }
}

void Surveying::check_one_save() {
  if (out_.shards.empty()) {
    if (lost_.empty()) add("RM203", "", "it has no shards to rebuild it from");
    return;
  }
  const ShardState& first = out_.shards.front();
  out_.ranks = first.header->ranks;
  out_.save_id = first.header->save_id;
  for (const ShardState& shard : out_.shards) {
    const ShardHeader& header = *shard.header;
    if (header.save_id != out_.save_id) {
      add("RM109", shard.name,
          fmt::format("it is of save {}, but '{}' of save {}", text_of(header.save_id), first.name,
                      text_of(out_.save_id)));
    } else if (header.ranks != out_.ranks) {
      add("RM204", shard.name,
          fmt::format("it is of {} ranks, but '{}' of {}", header.ranks, first.name, out_.ranks));
    }
  }
}

void Surveying::take_tensor(const ShardState& shard, const ShardTensor& tensor) {
  const auto [at, added] = known_.emplace(tensor.number, tensor.desc);
  if (added || at->second == tensor.desc) return;
  add("RM303", shard.name,
      fmt::format("it has tensor {} as {}, but another shard as {}", tensor.number,
                  to_string(tensor.desc), to_string(at->second)));
}

// Tensors that no shard has any part of leave a gap in the numbers, but at the end.
void Surveying::collect_tensors() {
  for (const ShardState& shard : out_.shards) {
    for (const ShardTensor& tensor : shard.index->tensors) take_tensor(shard, tensor);
  }
  std::uint32_t next = 0;
  out_.tensors.reserve(known_.size());
  for (auto& [number, desc] : known_) {
    if (number != next) {
      return add("RM301", "",
                 fmt::format("no shard has a part of tensor {}, but one of tensor {}; a shard is "
                             "missing",
                             next, number));
    }
    ++next;
    out_.tensors.push_back(desc);
  }
}

void Surveying::check_coverage(std::size_t tensor, const std::vector<Box>& boxes) {
  const TensorDesc& desc = out_.tensors[tensor];
  Coverage coverage = cover(desc.extent, boxes);
  if (desc.extent.empty() && boxes.empty()) coverage.missing.push_back(desc.extent);
  if (coverage.missing.size() > most_holes_to_report) {
    coverage.missing.resize(most_holes_to_report);
  }
  const auto complain = [&](const char* id, const Box& box, const char* why) {
    add(id, "", fmt::format("{}: {}: {}", to_string(desc), to_string(box), why));
    lost_.back().tensor = desc.name;
    lost_.back().box = box;
  };
  for (const Box& hole : coverage.missing) {
    complain("RM301", hole, "no shard has it as copy 0; a shard is missing");
  }
  if (!coverage.doubled.empty()) {
    complain("RM304", coverage.doubled.front(), "it is stored twice as copy 0");
  }
}

// Of copies, those of one box are numbered from 0: who has copy 1 of what nobody has as copy 0 has
// lost a neighbour, which the coverage tells.
void Surveying::check_coverage() {
  out_.stored.resize(out_.tensors.size());
  firsts_.resize(out_.tensors.size());
  for (const ShardState& shard : out_.shards) {
    for (const Extent& extent : shard.extents) {
      out_.stored[extent.tensor].push_back({shard.entry.rank, extent.box});
      if (extent.copy == 0) firsts_[extent.tensor].push_back(extent.box);
    }
  }
  for (std::size_t tensor = 0; tensor < out_.tensors.size(); ++tensor) {
    std::ranges::sort(out_.stored[tensor]);
    check_coverage(tensor, firsts_[tensor]);
  }
}

std::optional<Survey> Surveying::run() {
  for (const Entry& entry : files_.list(root_)) {
    const auto place = parse_shard_name(entry.name);
    if (place && entry.kind == EntryKind::regular) look_at(entry.name, *place);
  }
  std::ranges::sort(out_.shards, {}, [](const ShardState& shard) { return shard.entry.rank; });
  check_one_save();
  if (!lost_.empty()) return std::nullopt;
  collect_tensors();
  if (lost_.empty()) check_coverage();
  if (!lost_.empty()) return std::nullopt;
  return std::move(out_);
}

}  // namespace

std::optional<ShardPlace> parse_shard_name(std::string_view name) {
  constexpr std::string_view begin = "shard-";
  constexpr std::string_view middle = "-of-";
  if (!name.starts_with(begin)) return std::nullopt;
  ShardPlace place;
  const char* const end = name.data() + name.size();
  const auto [after_rank, wrong] = std::from_chars(name.data() + begin.size(), end, place.rank);
  if (wrong != std::errc() || end - after_rank < std::ssize(middle)) return std::nullopt;
  std::from_chars(after_rank + middle.size(), end, place.ranks);
  if (place.rank < 0 || place.ranks <= place.rank) return std::nullopt;
  return shard_name(place.rank, place.ranks) == name ? std::optional(place) : std::nullopt;
}

std::string text_of(const SaveId& id) {
  std::string text;
  for (const std::byte each : id) text += fmt::format("{:02x}", std::to_integer<unsigned>(each));
  return text;
}

std::optional<Survey> survey_shards(const FileSystem& files, const FileSystem::Path& root,
                                    std::vector<Finding>& lost) {
  return Surveying(files, root, lost).run();
}

}  // namespace remesh::native
