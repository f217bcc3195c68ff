#include "repair_documents.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/error.hpp"
#include "remesh/store/certificate.hpp"
#include "repair_burst.hpp"

namespace remesh::native {
namespace {

using Path = FileSystem::Path;

constexpr std::int64_t most_commit_bytes = 4096;
constexpr std::int64_t most_signature_bytes = 1 << 16;

std::int64_t size_of(std::string_view text) { return static_cast<std::int64_t>(text.size()); }

// Nothing if it is not there; a link is refused as everywhere.
std::optional<std::string> read_if_there(const FileSystem& files, const Path& path,
                                         std::int64_t limit) {
  if (!files.look(path)) return std::nullopt;
  return read_text(files, path, limit);
}

struct CommitLine {
  Digest digest;
  std::int64_t size_bytes = 0;
};

// Only what a writer would have written.
std::optional<CommitLine> parse_commit(std::string_view text) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos || !text.ends_with('\n')) return std::nullopt;
  const auto digest = parse_digest(text.substr(0, space));
  if (!digest) return std::nullopt;
  CommitLine line{*digest, 0};
  const char* const first = text.data() + space + 1;
  std::from_chars(first, text.data() + text.size() - 1, line.size_bytes);
  if (fmt::format("{} {}\n", to_string(*digest), line.size_bytes) != text) return std::nullopt;
  return line;
}

std::optional<Manifest> parsed(const std::string& text) {
  try {
    return parse_manifest(text);
  } catch (const Error& error) {
    if (error.id() == "RM102") throw;
    return std::nullopt;
  }
}

class DocumentRepair {
 public:
  DocumentRepair(const FileSystem& files, Path root, RepairReport& report)
      : files_(files), root_(std::move(root)), report_(report) {}

  Documents run() {
    repair_certificate();
    repair_manifest();
    out_.signature = read_if_there(files_, root_ / signature_name, most_signature_bytes);
    if (out_.why_lost) return std::move(out_);
    repair_commit(out_, report_, "written again from manifest.json, all of which holds");
    for (const SideFile& side : out_.manifest.catalog.side) repair_side(side);
    return std::move(out_);
  }

 private:
  void mended(std::string_view file, ByteRange bytes, MendedBy by, std::string how) {
    report_.mended.push_back(
        {.file = std::string(file), .bytes = bytes, .by = by, .how = std::move(how)});
  }
  void mended(std::string_view file, const Burst& burst) {
    mended(file, bytes_of_burst(burst, 0), MendedBy::flip, flipped_back(burst, 0));
  }
  Finding loss(const char* id, std::string_view file, const std::string& why) const;
  void lost(const char* id, std::string_view file, const std::string& why) {
    report_.lost.push_back(loss(id, file, why));
  }
  void left_out(const std::string& certificate, const std::string& why);

  void repair_certificate();
  std::optional<Digest> vouched_by_certificate() const {
    return out_.certificate ? certified_manifest(*out_.certificate) : std::nullopt;
  }
  void repair_manifest();
  bool take_manifest(std::string text);
  bool take_vouched(const std::optional<CommitLine>& commit);
  bool take_flipped(const std::optional<CommitLine>& commit);
  bool take_unvouched(const std::optional<CommitLine>& commit);
  void repair_side(const SideFile& side);
  bool restore_side(const SideFile& side, const std::string& name, std::string& text);

  const FileSystem& files_;
  const Path root_;
  RepairReport& report_;
  Documents out_;
};

Finding DocumentRepair::loss(const char* id, std::string_view file, const std::string& why) const {
  Finding finding;
  finding.id = id;
  finding.file = file;
  finding.message = fmt::format("cannot repair '{}': {}", (root_ / file).string(), why);
  return finding;
}

// No reader needs a certificate, so a checkpoint is whole without it.
void DocumentRepair::left_out(const std::string& certificate, const std::string& why) {
  mended(certificate_name, {0, size_of(certificate)}, MendedBy::cut,
         fmt::format("left out: {}, and no reader needs it", why));
  Finding finding;
  finding.id = "RM207";
  finding.severity = Severity::warn;
  finding.file = certificate_name;
  finding.message =
      fmt::format("cannot repair '{}': {}; the checkpoint is repaired without its certificate",
                  (root_ / certificate_name).string(), why);
  report_.notes.push_back(std::move(finding));
}

// Either the text has the digest that its end records, or one of the two was changed: a burst in
// the text leaves the end alone, and the other way round.
void DocumentRepair::repair_certificate() {
  auto text = read_if_there(files_, root_ / certificate_name, most_manifest_bytes);
  if (!text) return;
  if (text->size() < certificate_end_bytes) return left_out(*text, "it was cut short");
  const std::size_t body = text->size() - certificate_end_bytes;
  std::string content = text->substr(0, body);
  const std::string end = text->substr(body);
  const std::string wanted_end =
      fmt::format("{}{}\"}}", certificate_end, to_string(digest_of_text(content)));
  if (end == wanted_end) {
    out_.certificate = std::move(text);
  } else if (differ_by_burst(end, wanted_end)) {
    mended(certificate_name, {size_of(content), size_of(*text)}, MendedBy::record,
           "its own digest is written again");
    out_.certificate = content + wanted_end;
  } else if (const auto recorded = parse_certificate_end(end)) {
    const auto burst = undo_burst(content, *recorded);
    if (!burst) return left_out(*text, "no single burst explains its digest");
    mended(certificate_name, *burst);
    out_.certificate = content + end;
  } else {
    left_out(*text, "it does not end as a certificate does");
  }
}

bool DocumentRepair::take_manifest(std::string text) {
  auto manifest = parsed(text);
  if (!manifest) return false;
  out_.manifest = std::move(*manifest);
  out_.manifest_text = std::move(text);
  return true;
}

// COMMIT itself, a COMMIT that is a flipped bit away from the right one, or the certificate.
bool DocumentRepair::take_vouched(const std::optional<CommitLine>& commit) {
  const Digest found = digest_of_text(out_.found_manifest);
  const bool vouched = (commit && commit->digest == found) ||
                       (out_.found_commit &&
                        differ_by_burst(*out_.found_commit, commit_line(out_.found_manifest))) ||
                       vouched_by_certificate() == found;
  return vouched && take_manifest(out_.found_manifest);
}

bool DocumentRepair::take_flipped(const std::optional<CommitLine>& commit) {
  std::vector<Digest> recorded;
  if (commit && commit->size_bytes == size_of(out_.found_manifest))
    recorded.push_back(commit->digest);
  if (const auto digest = vouched_by_certificate()) recorded.push_back(*digest);
  for (const Digest digest : recorded) {
    std::string text = out_.found_manifest;
    const auto burst = undo_burst(text, digest);
    if (!burst || !take_manifest(std::move(text))) continue;
    mended(manifest_name, *burst);
    return true;
  }
  return false;
}

// Nothing vouches for the bytes; but the save id binds tensors, layout, side files and run id, each
// shard its entry, and canonical JSON the rest. What is left is how a Hugging Face directory was
// packed: it counts as intact where no COMMIT says otherwise. Roots of a tree are checked later.
bool DocumentRepair::take_unvouched(const std::optional<CommitLine>& commit) {
  auto manifest = parsed(out_.found_manifest);
  if (!manifest || to_json(*manifest) != out_.found_manifest) return false;
  const bool all_bound = manifest->catalog.packaging.empty();
  if (commit && !all_bound) return false;
  if (!all_bound) {
    Finding finding;
    finding.id = "RM105";
    finding.severity = Severity::warn;
    finding.file = commit_name;
    finding.message = fmt::format(
        "'{}' is not there to vouch for how manifest.json says that the files of a Hugging Face "
        "directory were packed; all else that it says was checked",
        (root_ / commit_name).string());
    report_.notes.push_back(std::move(finding));
  }
  out_.manifest = std::move(*manifest);
  out_.manifest_text = out_.found_manifest;
  return true;
}

void DocumentRepair::repair_manifest() {
  auto text = read_if_there(files_, root_ / manifest_name, most_manifest_bytes);
  const bool there = text.has_value();
  out_.found_manifest = std::move(text).value_or("");
  const auto entry = files_.look(root_ / commit_name);
  if (entry && entry->size_bytes <= most_commit_bytes) {
    out_.found_commit = read_text(files_, root_ / commit_name, most_commit_bytes);
  }
  const auto commit = out_.found_commit ? parse_commit(*out_.found_commit) : std::nullopt;
  if (!there) {
    out_.why_lost = loss("RM203", manifest_name, "it is not there");
  } else if (!take_vouched(commit) && !take_flipped(commit) && !take_unvouched(commit)) {
    out_.why_lost =
        loss("RM103", manifest_name,
             fmt::format("it has {}, which COMMIT does not record, and no burst of up to {} bits "
                         "explains the difference",
                         to_string(digest_of_text(out_.found_manifest)), most_burst_bits));
  }
}

bool DocumentRepair::restore_side(const SideFile& side, const std::string& name,
                                  std::string& text) {
  const std::int64_t found_bytes = size_of(text);
  if (found_bytes < side.size_bytes) return false;
  text.resize(static_cast<std::size_t>(side.size_bytes));
  const bool sound = digest_of_text(text) == side.digest;
  const auto burst = sound ? std::nullopt : undo_burst(text, side.digest);
  if (!sound && !burst) return false;
  if (burst) mended(name, *burst);
  if (found_bytes > side.size_bytes) {
    mended(name, {side.size_bytes, found_bytes}, MendedBy::cut, "left out: it was appended");
  }
  return true;
}

void DocumentRepair::repair_side(const SideFile& side) {
  const std::string name = fmt::format("{}/{}", side_directory, side.name);
  constexpr std::int64_t most_appended_bytes = std::int64_t{64} << 20;
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() - most_appended_bytes;
  auto text =
      read_if_there(files_, root_ / name, std::min(side.size_bytes, most) + most_appended_bytes);
  out_.side.push_back(text.value_or(""));
  if (!text) {
    lost("RM203", name, "it is not there, and there is no other copy of it");
  } else if (size_of(*text) < side.size_bytes) {
    lost("RM202", name,
         fmt::format("it has {} bytes, but manifest.json records {}, and there is no other copy "
                     "of it",
                     text->size(), side.size_bytes));
  } else if (!restore_side(side, name, out_.side.back())) {
    lost("RM207", name,
         fmt::format("it hashes to {}, but manifest.json records {}; no single burst explains "
                     "that, and there is no other copy of it",
                     to_string(digest_of_text(*text)), to_string(side.digest)));
  }
}

}  // namespace

Digest digest_of_text(std::string_view text) { return digest_of(std::as_bytes(std::span(text))); }

Documents repair_documents(const FileSystem& files, const FileSystem::Path& root,
                           RepairReport& report) {
  return DocumentRepair(files, root, report).run();
}

void repair_commit(Documents& documents, RepairReport& report, std::string_view how) {
  documents.commit_text = commit_line(documents.manifest_text);
  if (documents.found_commit == documents.commit_text) return;
  report.mended.push_back({.file = std::string(commit_name),
                           .bytes = {0, size_of(documents.commit_text)},
                           .by = MendedBy::record,
                           .how = std::string(how)});
}

// Quotes within names are escaped, so that only the member of the target looks like this.
std::optional<Digest> certified_manifest(std::string_view certificate) {
  constexpr std::string_view key = R"("manifest":")";
  const std::size_t at = certificate.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  return parse_digest(certificate.substr(at + key.size(), 24));
}

}  // namespace remesh::native
