#include "sealed.hpp"

#include <utility>

#include <fmt/format.h>

#include "followed.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/seal.hpp"
#include "safetensors/directory.hpp"

namespace remesh::sealed {
namespace {

using Path = FileSystem::Path;

bool is_directory(const FileSystem& files, const Path& target) {
  const auto entry = files.look(target / ".");
  return entry && entry->kind == EntryKind::directory;
}

Path or_here(const Path& directory) { return directory.empty() ? Path(".") : directory; }

// A checkpoint without the file system's ".." and "//": "a/b/" is "a/b".
Path plain(const Path& target) {
  Path normal = target.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

std::optional<safetensors::FoundFile> find_at(const FileSystem& files, const Path& path,
                                              Findings& findings) {
  return safetensors::find_file(files, or_here(path.parent_path()), path.filename().string(),
                                findings);
}

// Beside the place that the user knows, or beside the seal itself, where a link leads to that.
Path signature_of(const FileSystem& files, const Path& place, const Path& seal) {
  CollectedFindings ignored;  // who needs the signature finds that there is none
  const auto beside = [](const Path& path) {
    return Path(fmt::format("{}{}", path.string(), seal_signature_ending));
  };
  for (const Path& path : {beside(place), beside(seal)}) {
    if (const auto found = find_at(files, path, ignored)) return found->path;
  }
  return beside(place);
}

// A named seal need not have a seal's name.
std::optional<Seal> read(const FileSystem& files, const FoundSeal& found, Findings& findings) {
  try {
    return read_seal(files, found.path);
  } catch (const Error& error) {
    if (error.id().empty() || error.code() == Errc::io) throw;
    Finding finding;
    finding.id = error.id();
    finding.file = found.name;
    finding.message = error.what();
    findings.add(std::move(finding));
    return std::nullopt;
  }
}

}  // namespace

Path place_of(const FileSystem& files, const Path& target) {
  if (is_directory(files, target)) return target / seal_name;
  return plain(target).parent_path() /
         fmt::format("{}.{}", plain(target).filename().string(), seal_name);
}

std::optional<FoundSeal> find(const FileSystem& files, const Path& target, const Path& named,
                              Findings& findings) {
  const Path place = named.empty() ? place_of(files, target) : named;
  if (!named.empty() && !files.look(named)) {
    throw Error(
        Errc::not_found,
        fmt::format("cannot read the seal '{}': there is nothing of that name", named.string()));
  }
  const auto seal = find_at(files, named.empty() ? place : followed(files, named), findings);
  if (!seal) return std::nullopt;
  return FoundSeal{place.filename().string(), seal->path, signature_of(files, place, seal->path)};
}

std::function<Path(const std::string&)> files_of(const FileSystem& files, const Path& target) {
  const bool is_file = !is_directory(files, target);
  const Path directory = is_file ? or_here(plain(target).parent_path()) : target;
  return [&files, directory, target, is_file](const std::string& name) {
    if (is_file && name == target.filename()) return followed(files, target);
    CollectedFindings ignored;  // opening what is not there says so
    const auto found = safetensors::find_file(files, directory, name, ignored);
    return found ? found->path : directory / name;
  };
}

std::unique_ptr<Reader> open(const FileSystem& files, const std::optional<FoundSeal>& found,
                             OpenCheckpoint checkpoint, Findings& findings) {
  if (!found) return make_reader(files, std::move(checkpoint));
  const auto seal = read(files, *found, findings);
  if (!seal) return make_reader(files, std::move(checkpoint));
  return make_reader(files,
                     attach_seal(files, std::move(checkpoint), *seal, found->name, findings));
}

}  // namespace remesh::sealed
