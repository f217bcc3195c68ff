#include "directory.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "defect.hpp"
#include "remesh/core/error.hpp"

namespace remesh::safetensors {
namespace {

constexpr std::string_view blobs = "../../blobs/";

// Whether the target of a link is what the hub's cache writes.
bool is_blob(const std::string& target, const std::string& link) {
  if (!target.starts_with(blobs)) return false;
  try {
    check_component(std::string_view(target).substr(blobs.size()), link);
  } catch (const Error&) {
    return false;
  }
  return true;
}

// The file to which a link leads. (FileSystem has no question for a link's target; the answer is
// believed only where it is a blob, and that is opened through FileSystem, which follows no link.)
std::optional<FoundFile> follow(const FileSystem& files, const FileSystem::Path& directory,
                                const std::string& name, Findings& findings) {
  std::error_code failed;
  const std::string target = std::filesystem::read_symlink(directory / name, failed).string();
  if (failed || !is_blob(target, name)) {
    report(findings, name,
           defect("RM603",
                  fmt::format("it is a link to '{}', but only links of the hub's cache "
                              "('../../blobs/NAME') are followed",
                              shown(target)),
                  "put the file itself in its place"));
    return std::nullopt;
  }
  const auto store = files.look(directory / "../../blobs");
  if (!store || store->kind != EntryKind::directory) {
    report(findings, name,
           defect("RM603", "it is a link into '../../blobs', which is no directory itself",
                  "put the file itself in its place"));
    return std::nullopt;
  }
  const FileSystem::Path blob = directory / target;
  const auto entry = files.look(blob);
  if (!entry || entry->kind != EntryKind::regular) {
    report(findings, name,
           defect("RM203",
                  fmt::format("it is a link to '{}', but there is no such file", shown(target)),
                  "download the snapshot again"));
    return std::nullopt;
  }
  return FoundFile{name, blob, entry->size_bytes};
}

}  // namespace

const FoundFile* Directory::find(std::string_view name) const noexcept {
  const auto found = std::ranges::lower_bound(files, name, {}, &FoundFile::name);
  return found != files.end() && found->name == name ? &*found : nullptr;
}

Directory list_directory(const FileSystem& files, const FileSystem::Path& path,
                         Findings& findings) {
  constexpr auto npos = std::string::npos;
  Directory directory;
  for (const Entry& entry : files.list(path)) {
    if (entry.kind == EntryKind::regular) {
      directory.files.push_back({entry.name, path / entry.name, entry.size_bytes});
    } else if (entry.kind == EntryKind::link) {
      if (auto file = follow(files, path, entry.name, findings)) {
        directory.files.push_back(std::move(*file));
      }
    } else if (entry.kind == EntryKind::other && entry.name.find(".safetensors") != npos) {
      report(findings, entry.name,
             defect("RM604", "it is no regular file", "put the file itself in its place"));
    } else {
      directory.others.push_back(entry.kind == EntryKind::directory ? entry.name + "/"
                                                                    : entry.name);
    }
  }
  return directory;
}

std::optional<FoundFile> find_file(const FileSystem& files, const FileSystem::Path& directory,
                                   const std::string& name, Findings& findings) {
  const auto entry = files.look(directory / name);
  if (!entry) return std::nullopt;
  if (entry->kind == EntryKind::link) return follow(files, directory, name, findings);
  if (entry->kind == EntryKind::regular) {
    return FoundFile{name, directory / name, entry->size_bytes};
  }
  report(findings, name,
         defect("RM604", "it is no regular file", "put the file itself in its place"));
  return std::nullopt;
}

}  // namespace remesh::safetensors
