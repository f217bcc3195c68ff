#include "remesh/store/seal.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/burst.hpp"
#include "remesh/core/error.hpp"
#include "remesh/core/name_table.hpp"
#include "remesh/store/certificate.hpp"
#include "remesh/store/range_digest.hpp"
#include "remesh/store/signature.hpp"
#include "remesh/store/staging.hpp"
#include "seal_format.hpp"

namespace remesh {
namespace {

using Path = FileSystem::Path;

constexpr std::string_view resealing =
    "if the change was meant, remove the seal and run `remesh seal` again";

// The files of a checkpoint and of its seal, by name, and what of the one is the other's.
class Attachment {
 public:
  Attachment(const FileSystem& files, OpenCheckpoint checkpoint, const Seal& seal, std::string name,
             Findings& findings)
      : files_(files),
        checkpoint_(with_all_files(std::move(checkpoint))),
        seal_(seal),
        name_(std::move(name)),
        findings_(findings) {}

  OpenCheckpoint run() && {
    if (checkpoint_.catalog.format != seal_.format) {
      refuse(fmt::format("it was made for a checkpoint of format {:?}, and this is {:?}",
                         seal_.format, checkpoint_.catalog.format));
      return std::move(checkpoint_);
    }
    match_files();
    check_rests();
    take_digests();
    take_blocks();
    return std::move(checkpoint_);
  }

 private:
  void match_files();
  void report_added(const std::string& name, std::int64_t bytes);
  bool is_same_size(std::uint32_t file, std::uint32_t sealed);
  void check_rests();
  std::optional<Digest> digest_of_rest(std::uint32_t file,
                                       const std::vector<ByteRange>& ranges) const;
  void report_rest(const Guard& guard, Digest found);
  void take_side_digest(const std::string& name, Digest digest);
  void take_digests();
  bool is_sealed(const TensorDesc& desc, std::optional<std::uint32_t> number, std::uint32_t file);
  void take_blocks();
  void refuse(const std::string& why, const std::string& file = {});
  void report(Finding finding);

  std::optional<std::uint32_t> find(const std::string& tensor) const {
    return numbers_.find(tensor, name_of());
  }
  struct NameOf {
    const std::vector<TensorDesc>& tensors;
    std::string_view operator()(std::uint32_t at) const { return tensors[at].name; }
  };
  NameOf name_of() const { return {seal_.tensors}; }

  const FileSystem& files_;
  OpenCheckpoint checkpoint_;
  const Seal& seal_;
  const std::string name_;
  Findings& findings_;

  std::map<std::uint32_t, std::uint32_t> sealed_as_;  // files that fit, by their number here
  std::vector<Guard> guards_;
  NameTable numbers_;  // of the sealed tensors
  bool told_ = false;
};

void Attachment::report(Finding finding) {
  told_ = true;
  findings_.add(std::move(finding));
}

void Attachment::refuse(const std::string& why, const std::string& file) {
  Finding finding;
  finding.id = "RM111";
  finding.file = file;
  finding.message = fmt::format("cannot use the seal '{}': {}; {}", name_, why, resealing);
  report(std::move(finding));
}

bool Attachment::is_same_size(std::uint32_t file, std::uint32_t sealed) {
  const ExtentMap::FileEntry& here = checkpoint_.extents.files()[file];
  const std::int64_t wanted = seal_.extents.files()[sealed].size_bytes;
  if (here.size_bytes == wanted) return true;
  Finding finding;
  finding.id = "RM111";
  finding.file = here.name;
  finding.found = fmt::format("{} bytes", here.size_bytes);
  finding.expected = fmt::format("{} bytes", wanted);
  finding.message =
      fmt::format("cannot use the seal '{}': {:?} has {} bytes, but had {} when it was sealed; {}",
                  name_, here.name, here.size_bytes, wanted, resealing);
  report(std::move(finding));
  return false;
}

void Attachment::match_files() {
  std::map<std::string_view, std::uint32_t> here;
  const auto files = checkpoint_.extents.files();
  for (std::uint32_t file = 0; file < files.size(); ++file) here.emplace(files[file].name, file);
  const auto sealed = seal_.extents.files();
  for (std::uint32_t number = 0; number < sealed.size(); ++number) {
    const auto found = here.find(sealed[number].name);
    if (found == here.end()) {
      refuse(fmt::format("it has the file {:?} with {} bytes, but the checkpoint has none",
                         sealed[number].name, sealed[number].size_bytes),
             sealed[number].name);
      continue;
    }
    if (is_same_size(found->second, number)) sealed_as_.emplace(found->second, number);
    here.erase(found);
  }
  for (const auto& [name, file] : here) report_added(std::string(name), files[file].size_bytes);
}

// A README that came later says nothing of the tensors. A signature is for all files.
void Attachment::report_added(const std::string& name, std::int64_t bytes) {
  const bool beside = std::ranges::find(checkpoint_.catalog.side, name, &SideFile::name) !=
                      checkpoint_.catalog.side.end();
  if (!beside || !seal_.trees.empty()) {
    refuse(fmt::format("it does not have the file {:?}, which has {} bytes", name, bytes), name);
    return;
  }
  Finding finding;
  finding.id = "RM111";
  finding.severity = Severity::warn;
  finding.file = name;
  finding.message = fmt::format(
      "{:?} ({} bytes) came after the seal '{}', which says nothing of it", name, bytes, name_);
  findings_.add(std::move(finding));
}

// Whether it says something of a file, not of the machine.
bool is_of_file(Errc code) {
  return code == Errc::not_found || code == Errc::corrupt || code == Errc::unsafe;
}

// The bytes are those of the file now; nothing where they cannot be read, which others tell.
std::optional<Digest> Attachment::digest_of_rest(std::uint32_t file,
                                                 const std::vector<ByteRange>& ranges) const {
  try {
    const auto opened = files_.open(checkpoint_.paths[file]);
    return digest_of_ranges(ranges, [&](std::int64_t at, std::span<std::byte> into) {
      opened->read_at(at, into);
      return true;
    });
  } catch (const Error& error) {
    if (!is_of_file(error.code())) throw;
    return std::nullopt;
  }
}

void Attachment::report_rest(const Guard& guard, Digest found) {
  Finding finding;
  finding.id = "RM207";
  finding.file = checkpoint_.extents.files()[guard.file].name;
  finding.bytes = ByteRange{guard.ranges.front().begin, guard.ranges.back().end};
  finding.found = to_string(found);
  finding.expected = to_string(guard.expected);
  finding.message = fmt::format(
      "cannot read '{}': its bytes that are no tensor's hash to {}, but {} is recorded; the file "
      "changed after it was sealed",
      finding.file, finding.found, finding.expected);
  const std::int64_t length = finding.bytes->end - finding.bytes->begin;
  if (guard.ranges.size() == 1 && length <= ExtentMap::block_bytes) {
    if (const auto burst = locate_burst(guard.expected, found, length)) {
      finding.message += "; " + describe(*burst, finding.bytes->begin);
    }
  }
  report(std::move(finding));
}

// A side file is compared when it is read, and by a judge.
void Attachment::take_side_digest(const std::string& name, Digest digest) {
  const auto side = std::ranges::find(checkpoint_.catalog.side, name, &SideFile::name);
  if (side != checkpoint_.catalog.side.end()) side->digest = digest;
}

void Attachment::check_rests() {
  const auto rests = native::rests_of(seal_.extents);
  std::set<std::string_view> side;
  for (const SideFile& file : checkpoint_.catalog.side) side.insert(file.name);
  for (const auto& [file, sealed] : sealed_as_) {
    const std::string& name = checkpoint_.extents.files()[file].name;
    const bool is_side = side.contains(name);
    Guard guard{file, rests[sealed], seal_.rest[sealed],
                is_side ? "side file" : "part that is no tensor's"};
    if (is_side) take_side_digest(name, guard.expected);
    if (!is_side && !guard.ranges.empty()) {
      const auto found = digest_of_rest(file, guard.ranges);
      if (found && *found != guard.expected) {
        report_rest(guard, *found);
        continue;  // it was told
      }
    }
    guards_.push_back(std::move(guard));
  }
}

// Whether a tensor is what was sealed. Where its file is not, that was told.
bool Attachment::is_sealed(const TensorDesc& desc, std::optional<std::uint32_t> number,
                           std::uint32_t file) {
  if (number && seal_.tensors[*number] == desc) return true;
  const bool told =
      std::ranges::none_of(guards_, [&](const Guard& guard) { return guard.file == file; });
  if (told) return false;
  Finding finding;
  finding.id = "RM111";
  finding.tensor = desc.name;
  finding.message = fmt::format(
      "cannot use the seal '{}': the checkpoint has the tensor {}, but {}; {}", name_,
      to_string(desc),
      number ? "it was sealed as " + to_string(seal_.tensors[*number]) : "that was not sealed",
      resealing);
  report(std::move(finding));
  return false;
}

void Attachment::take_digests() {
  numbers_.reserve(seal_.tensors.size());
  for (std::uint32_t at = 0; at < seal_.tensors.size(); ++at) {
    numbers_.add(seal_.tensors[at].name, at, name_of());
  }
  Catalog& catalog = checkpoint_.catalog;
  std::vector<Digest> digests;
  digests.reserve(catalog.tensors.size());
  const ExtentMap& map = checkpoint_.extents;
  for (std::uint32_t tensor = 0; tensor < catalog.tensors.size(); ++tensor) {
    const auto pieces = map.of(tensor);
    const std::uint32_t file = pieces.empty() ? 0 : map.extents()[pieces.front()].file;
    const auto number = find(catalog.tensors[tensor].name);
    if (is_sealed(catalog.tensors[tensor], number, file)) digests.push_back(seal_.digests[*number]);
  }
  // Some digests are none: readers want one for each tensor.
  if (digests.size() == catalog.tensors.size() && digests.size() == seal_.tensors.size()) {
    catalog.digests = std::move(digests);
  } else if (!told_) {
    refuse(fmt::format("it has {} tensors, but the checkpoint has {}", seal_.tensors.size(),
                       catalog.tensors.size()));
  }
}

// Extents that lie where they were sealed get their blocks; nobody can say anything of others.
void Attachment::take_blocks() {
  const ExtentMap& map = checkpoint_.extents;
  std::vector<Extent> extents(map.extents().begin(), map.extents().end());
  std::vector<Digest> blocks;
  for (Extent& extent : extents) {
    const auto file = sealed_as_.find(extent.file);
    const TensorDesc& desc = checkpoint_.catalog.tensors[extent.tensor];
    const auto number = find(desc.name);
    if (file == sealed_as_.end() || !number || seal_.tensors[*number] != desc) continue;
    for (const std::uint32_t at : seal_.extents.of(*number)) {
      const Extent& sealed = seal_.extents.extents()[at];
      Extent same = sealed;
      same.tensor = extent.tensor;
      same.file = extent.file;
      same.rank = extent.rank;
      same.first_block = extent.first_block;
      if (same != extent || sealed.file != file->second) continue;
      extent.first_block = std::ssize(blocks);
      const auto recorded = seal_.extents.blocks(sealed);
      blocks.insert(blocks.end(), recorded.begin(), recorded.end());
      break;
    }
    if (extent.first_block < 0 && !told_) {
      refuse(fmt::format("{} lies elsewhere than when it was sealed", to_string(desc)));
    }
  }
  const auto files = map.files();
  checkpoint_.extents = ExtentMap({files.begin(), files.end()}, std::move(extents),
                                  std::move(blocks), std::move(guards_));
}

// A signature alone would be in the way of the next seal.
void remove_quietly(FileSystem& files, const Path& signature) noexcept {
  try {
    files.remove_all(signature);
  } catch (...) {  // NOLINT(bugprone-empty-catch): the next seal is told of it
  }
}

}  // namespace

bool is_seal_name(std::string_view name) noexcept {
  if (name.ends_with(seal_signature_ending)) name.remove_suffix(seal_signature_ending.size());
  if (!name.ends_with(seal_name)) return false;
  name.remove_suffix(seal_name.size());
  return name.empty() || name.ends_with('.');
}

OpenCheckpoint with_all_files(OpenCheckpoint checkpoint) {
  const ExtentMap& map = checkpoint.extents;
  std::vector<ExtentMap::FileEntry> entries(map.files().begin(), map.files().end());
  const Catalog& catalog = checkpoint.catalog;
  entries.reserve(entries.size() + catalog.side.size() + checkpoint.others.size());
  checkpoint.paths.reserve(entries.capacity());
  for (std::size_t side = 0; side < catalog.side.size(); ++side) {
    entries.push_back({catalog.side[side].name, catalog.side[side].size_bytes});
    checkpoint.paths.push_back(checkpoint.side_paths[side]);
  }
  for (OpenCheckpoint::OtherFile& other : checkpoint.others) {
    entries.push_back({std::move(other.name), other.size_bytes});
    checkpoint.paths.push_back(std::move(other.path));
  }
  checkpoint.others.clear();
  checkpoint.extents = ExtentMap(std::move(entries), {map.extents().begin(), map.extents().end()});
  return checkpoint;
}

OpenCheckpoint attach_seal(const FileSystem& files, OpenCheckpoint checkpoint, const Seal& seal,
                           const std::string& name, Findings& findings) {
  return Attachment(files, std::move(checkpoint), seal, name, findings).run();
}

std::string sign_seal(std::string_view text, const SecretKey& key) {
  return sign(std::as_bytes(std::span(text)), key,
              fmt::format("seal {}", to_string(digest_of(std::as_bytes(std::span(text))))));
}

bool write_seal(FileSystem& files, const Path& path, std::string_view text,
                std::string_view signature) {
  const std::string place = path.string();
  // However the path is spelled, what an earlier run left is found.
  const std::string name = path.filename().string();
  const std::string id = fmt::format("{:016x}", digest_of(std::as_bytes(std::span(name))).value);
  const Path named = fmt::format("{}{}", place, seal_signature_ending);
  if (signature.empty() && files.look(named)) {
    throw Error(
        Errc::exists,
        fmt::format("cannot write '{}': '{}' is there, which signs another seal; remove it, "
                    "or sign this one",
                    place, named.string()));
  }
  const Staging staging(files, path, id, Leftovers::discard);
  const Path written = staging.directory() / "seal";
  write_whole(files, written, std::as_bytes(std::span(text)));
  if (signature.empty()) {
    files.rename_no_replace(written, path);
  } else {
    // Without its seal a signature says nothing; a seal without its signature would say too little.
    const Path beside = staging.directory() / "signature";
    write_whole(files, beside, std::as_bytes(std::span(signature)));
    files.rename_no_replace(beside, named);
    try {
      files.rename_no_replace(written, path);
    } catch (...) {
      remove_quietly(files, named);
      throw;
    }
  }
  return files.sync_directory(path.parent_path());
}

namespace native {

std::vector<std::vector<ByteRange>> rests_of(const ExtentMap& extents) {
  const auto files = extents.files();
  std::vector<std::vector<ByteRange>> rests(files.size());
  std::vector<std::int64_t> at(files.size(), 0);
  for (const Extent& extent : extents.extents()) {
    if (extent.length_bytes == 0) continue;
    std::int64_t& begin = at[extent.file];
    if (extent.offset_bytes > begin) rests[extent.file].push_back({begin, extent.offset_bytes});
    begin = extent.offset_bytes + extent.length_bytes;
  }
  for (std::size_t file = 0; file < files.size(); ++file) {
    if (files[file].size_bytes > at[file])
      rests[file].push_back({at[file], files[file].size_bytes});
  }
  return rests;
}

}  // namespace native
}  // namespace remesh
