#include "remesh/store/staging.hpp"

#include <utility>

#include <fmt/format.h>

#include "remesh/core/budget.hpp"
#include "remesh/core/error.hpp"

namespace remesh {
namespace {

using Path = FileSystem::Path;

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

void refuse_existing(const FileSystem& files, const Path& destination) {
  if (!files.look(destination)) return;
  throw Error(Errc::exists, fmt::format("cannot write '{}': destination exists; remesh never "
                                        "replaces a checkpoint, so choose another name",
                                        destination.string()));
}

void require_parent(const FileSystem& files, const Path& destination) {
  const Path parent = destination.parent_path();
  if (parent.empty() || files.look(parent / ".")) return;
  throw Error(Errc::not_found,
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

}  // namespace

Staging::Staging(FileSystem& files, const Path& destination, const std::string& job_id,
                 bool discard_leftovers)
    : files_(files), destination_(without_trailing_slash(destination)) {
  refuse_existing(files_, destination_);
  require_parent(files_, destination_);
  directory_ = destination_.parent_path() /
               fmt::format(".{}.remesh-{}", destination_.filename().string(), job_id);
  if (create_if_absent(files_, directory_)) {
    lock_ = lock_new(files_, directory_);
    return;
  }
  lock_ = lock(files_, directory_);
  if (!discard_leftovers) {
    throw Error(Errc::exists,
                fmt::format("cannot write to '{}': an earlier job that did not finish left '{}'; "
                            "`--discard` removes it and starts anew",
                            destination_.string(), directory_.string()));
  }
  files_.remove_all(directory_);
  lock_.reset();
  files_.create_directory(directory_);
  lock_ = lock_new(files_, directory_);
}

Staging::~Staging() {
  if (published_) return;
  try {
    files_.remove_all(directory_);
  } catch (...) {  // NOLINT(bugprone-empty-catch): the next job names what stayed behind
  }
}

void Staging::check_room(std::int64_t needed_bytes) const {
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
