#include "side_files.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "defect.hpp"
#include "index.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/seal.hpp"

namespace remesh::safetensors {
namespace {

constexpr std::array<std::string_view, 8> weight_endings{
    ".safetensors", ".bin", ".pt", ".pth", ".gguf", ".h5", ".msgpack", ".onnx"};
// Of a training, opaque, and the same for every rank.
constexpr std::array<std::string_view, 3> opaque_files{"scaler.pt", "scheduler.pt",
                                                       "training_args.bin"};
constexpr std::int64_t piece_bytes = std::int64_t{1} << 20;

bool is_own(const FoundFile& file, const Packaging& packaging) {
  return std::ranges::binary_search(packaging.files, file.name, {}, &Packaging::File::name) ||
         file.name == index_name || file.name == optimizer_index_name || is_seal_name(file.name);
}

bool is_plain(const std::string& name) {
  try {
    check_component(name, "the directory");
  } catch (const Error&) {
    return false;
  }
  return true;
}

bool is_carried(const FoundFile& file) {
  const auto ends_file = [&](std::string_view ending) { return file.name.ends_with(ending); };
  if (file.size_bytes > max_side_bytes || !is_plain(file.name)) return false;
  return std::ranges::none_of(weight_endings, ends_file) ||
         std::ranges::find(opaque_files, file.name) != opaque_files.end();
}

// A pointer is carried as it is, but nobody wants it. An empty file may be meant.
void warn_of_pointer(const std::string& name, std::string_view begin, std::int64_t file_bytes,
                     Findings& findings) {
  auto finding = no_content(begin, file_bytes);
  if (!finding) return;
  finding->severity = Severity::warn;
  report(findings, name, std::move(*finding));
}

SideFile read_side_file(const FileSystem& files, const FoundFile& found, Findings& findings) {
  const auto file = files.open(found.path);
  SideFile side{.name = found.name, .size_bytes = file->size_bytes(), .digest = {}};
  std::vector<std::byte> piece;
  for (std::int64_t at = 0; at < side.size_bytes; at += piece_bytes) {
    piece.resize(static_cast<std::size_t>(std::min(piece_bytes, side.size_bytes - at)));
    file->read_at(at, piece);
    side.digest = extend(side.digest, piece);
    const std::string_view text(reinterpret_cast<const char*>(piece.data()), piece.size());
    if (at == 0) warn_of_pointer(found.name, text, side.size_bytes, findings);
  }
  return side;
}

void report_left_out(std::vector<std::string> left_out, Findings& findings) {
  if (left_out.empty()) return;
  std::ranges::sort(left_out);
  Finding finding;
  finding.id = "RM108";
  const bool has_optimizer = std::ranges::any_of(
      left_out, [](const std::string& name) { return name.starts_with("optimizer"); });
  finding.severity = has_optimizer ? Severity::warn : Severity::note;
  finding.message = "not carried: " + listed(left_out);
  finding.found = fmt::format("{}", fmt::join(left_out, ", "));
  findings.add(std::move(finding));
}

}  // namespace

void add_side_files(const FileSystem& files, const Directory& directory, OpenCheckpoint& checkpoint,
                    Findings& findings) {
  std::vector<std::string> left_out = directory.others;
  for (const FoundFile& found : directory.files) {
    if (is_own(found, checkpoint.catalog.packaging)) continue;
    if (!is_carried(found)) {
      left_out.push_back(found.name);
      continue;
    }
    std::optional<SideFile> side;
    try {
      side = read_side_file(files, found, findings);
    } catch (const Error& error) {
      findings.add(as_finding(error, found.name));
      continue;
    }
    checkpoint.catalog.side.push_back(std::move(*side));
    checkpoint.side_paths.push_back(found.path);
  }
  report_left_out(std::move(left_out), findings);
}

}  // namespace remesh::safetensors
