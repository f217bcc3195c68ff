#include "remesh/store/staging.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/budget.hpp"
#include "remesh/core/error.hpp"

namespace remesh {
namespace {

using Path = FileSystem::Path;

constexpr std::string_view staging_mark = ".remesh-";
constexpr std::string_view identity_name = "job";

// "a/b/" and "a/b/." name the same directory as "a/b".
Path without_trailing_slash(const Path& destination) {
  Path plain = destination.lexically_normal();
  if (!plain.has_filename()) plain = plain.parent_path();
  if (!plain.has_filename() || plain.filename() == "." || plain.filename() == "..") {
    throw Error(Errc::invalid_argument,
                fmt::format("cannot write to '{}': it does not end in the name of a new directory",
                            destination.string()));
  }
  return plain;
}

// What the names of all its temporary directories begin with.
std::string stem_of(const Path& destination) {
  return fmt::format(".{}{}", destination.filename().string(), staging_mark);
}

void require_parent(const FileSystem& files, const Path& destination) {
  const Path parent = destination.parent_path();
  if (parent.empty() || files.look(parent / ".")) return;
  throw Error(Errc::io,
              fmt::format("cannot write to '{}': there is no directory '{}'; create it first",
                          destination.string(), parent.string()));
}

// Whether the directory is new.
bool create_if_absent(FileSystem& files, const Path& directory) {
  try {
    files.create_directory(directory);
    return true;
  } catch (const Error& error) {
    if (error.code() != Errc::exists) throw;
    return false;
  }
}

std::unique_ptr<DirectoryLock> lock(FileSystem& files, const Path& directory) {
  auto held = files.try_lock(directory);
  if (held) return held;
  throw Error(
      Errc::busy,
      fmt::format("cannot write to '{}': another job holds it; wait for that job, or choose "
                  "another destination",
                  directory.string()),
      "RM701");
}

// A directory that cannot be locked is of no use to anybody, unless another job has just taken it.
std::unique_ptr<DirectoryLock> lock_new(FileSystem& files, const Path& directory) {
  try {
    return lock(files, directory);
  } catch (const Error& error) {
    if (error.code() != Errc::busy) files.remove_all(directory);
    throw;
  }
}

[[noreturn]] void refuse_leftovers(const Path& destination, const Path& directory,
                                   bool may_resume) {
  throw Error(Errc::exists,
              fmt::format("cannot write to '{}': an earlier job that did not finish left '{}'; "
                          "{}`--discard` removes it and starts anew",
                          destination.string(), directory.string(),
                          may_resume ? "`--resume` completes it, " : ""));
}

// Whoever resumes does not expect that something else is begun.
void refuse_other_jobs(const FileSystem& files, const Path& directory, const std::string& stem) {
  if (files.look(directory)) return;
  const Path parent = directory.parent_path();
  for (const Entry& entry : files.list(parent.empty() ? Path(".") : parent)) {
    if (!entry.name.starts_with(stem)) continue;
    throw Error(Errc::unsafe,
                fmt::format("cannot resume: '{}' was left by a job with other options or another "
                            "source; repeat that job's command, or say `--discard` in place of "
                            "`--resume`, which removes what it left",
                            (parent / entry.name).string()));
  }
}

// Whether what is there was left by the very same job. What stopped before it could say which job
// it is has nothing to go on with: false. Throws if it was another.
bool is_of_job(const FileSystem& files, const Path& directory, const std::string& identity) {
  constexpr std::int64_t most_bytes = std::int64_t{64} << 20;
  const Path path = directory / identity_name;
  const std::string found = files.look(path) ? read_text(files, path, most_bytes) : "";
  if (found == identity) return true;
  if (identity.starts_with(found)) return false;
  const auto [mine, other] = std::ranges::mismatch(identity, found);
  const auto line = [](const std::string& text, std::size_t at) {
    const std::size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
    return text.substr(begin, std::min(text.find('\n', begin), begin + 200) - begin);
  };
  const auto at = static_cast<std::size_t>(mine - identity.begin());
  throw Error(Errc::unsafe,
              fmt::format("cannot resume what is in '{}': it was begun with {:?}, but now it is "
                          "{:?}; `--discard` removes it and starts anew",
                          directory.string(), line(found, at), line(identity, at)));
}

}  // namespace

void refuse_existing(const FileSystem& files, const Path& destination) {
  if (!files.look(destination)) return;
  throw Error(Errc::exists, fmt::format("cannot write '{}': destination exists; remesh never "
                                        "replaces a checkpoint, so choose another name",
                                        destination.string()));
}

void refuse_finished(const FileSystem& files, const Path& destination,
                     const std::string& source_name) {
  if (!files.look(destination)) return;
  // Who asks to resume may well have been requeued after the job was done.
  throw Error(Errc::exists,
              fmt::format("cannot resume '{}': it exists, so there is nothing to complete; `remesh "
                          "verify {} --against {}` tells whether it is what this job would write",
                          destination.string(), destination.string(), source_name));
}

Path staging_directory(const Path& destination, const std::string& job_id) {
  const Path plain = without_trailing_slash(destination);
  return plain.parent_path() / (stem_of(plain) + job_id);
}

bool is_staging_name(std::string_view name) noexcept {
  return name.starts_with('.') && name.find(staging_mark) != std::string_view::npos;
}

std::vector<Path> left_by_other_jobs(const FileSystem& files, const Path& destination,
                                     const std::string& job_id) {
  const Path plain = without_trailing_slash(destination);
  const Path parent = plain.parent_path();
  const std::string stem = stem_of(plain);
  std::vector<Path> found;
  if (!files.look(parent.empty() ? Path(".") : parent / ".")) return found;
  for (const Entry& entry : files.list(parent.empty() ? Path(".") : parent)) {
    if (entry.kind == EntryKind::directory && entry.name.starts_with(stem) &&
        entry.name != stem + job_id) {
      found.push_back(parent / entry.name);
    }
  }
  return found;
}

std::vector<Path> discard_left_by_other_jobs(FileSystem& files, const Path& destination,
                                             const std::string& job_id) {
  std::vector<Path> removed;
  for (const Path& path : left_by_other_jobs(files, destination, job_id)) {
    const auto held = files.try_lock(path);
    if (!held) continue;
    files.remove_all(path);
    removed.push_back(path);
  }
  return removed;
}

Staging::Staging(FileSystem& files, const Path& destination, const std::string& job_id,
                 Leftovers leftovers, const std::string& identity)
    : files_(files), destination_(without_trailing_slash(destination)) {
  refuse_existing(files_, destination_);
  require_parent(files_, destination_);
  directory_ = staging_directory(destination_, job_id);
  if (leftovers == Leftovers::resume) refuse_other_jobs(files_, directory_, stem_of(destination_));
  if (create_if_absent(files_, directory_)) {
    lock_ = lock_new(files_, directory_);
  } else {
    lock_ = lock(files_, directory_);
    if (leftovers == Leftovers::refuse)
      refuse_leftovers(destination_, directory_, !identity.empty());
    kept_ = leftovers == Leftovers::resume;
    if (kept_ && is_of_job(files_, directory_, identity)) {
      resumes_ = true;
      return;
    }
    files_.remove_all(directory_);
    lock_.reset();
    files_.create_directory(directory_);
    lock_ = lock_new(files_, directory_);
  }
  kept_ = leftovers == Leftovers::resume;
  if (identity.empty()) return;
  try {
    write_whole(files_, directory_ / identity_name, std::as_bytes(std::span(identity)));
  } catch (...) {
    remove_quietly();
    throw;
  }
}

void Staging::remove_quietly() noexcept {
  try {
    files_.remove_all(directory_);
  } catch (...) {  // NOLINT(bugprone-empty-catch): the next job names what stayed behind
  }
}

Staging::~Staging() {
  if (!published_ && !kept_) remove_quietly();
}

void Staging::check_room(std::int64_t needed_bytes) const {
  if (resumes_) return;
  const std::int64_t free = files_.free_bytes(directory_);
  if (needed_bytes <= free) return;
  throw Error(
      Errc::io,
      fmt::format("cannot write to '{}': it needs {} ({} bytes), but the file system has {} "
                  "free ({} bytes)",
                  destination_.string(), format_bytes(needed_bytes), needed_bytes,
                  format_bytes(free), free),
      "RM702");
}

bool Staging::publish() {
  files_.remove_all(directory_ / identity_name);
  const bool synced = files_.sync_directory(directory_);
  files_.rename_no_replace(directory_, destination_);
  published_ = true;
  try {
    return files_.sync_directory(destination_.parent_path()) && synced;
  } catch (const Error& error) {
    throw Error(
        Errc::io,
        fmt::format("cannot make sure that '{}' survives a crash: it is visible, durability "
                    "unknown: {}",
                    destination_.string(), error.what()),
        "RM703");
  }
}

}  // namespace remesh
