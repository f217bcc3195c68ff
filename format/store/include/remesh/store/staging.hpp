#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/store/file_system.hpp"

namespace remesh {

/// What becomes of what an interrupted job of the same name left behind.
enum class Leftovers {
  refuse,   ///< it is an error, which names the ways out
  discard,  ///< removed, if nobody holds it
  resume,   ///< kept, to be completed: FileSystem is a ResumingFileSystem. Kept again on failure
};

/// Whether a name is that of such a temporary directory.
bool is_staging_name(std::string_view name) noexcept;

/// Throws Error(exists, "destination exists") if something is there.
void refuse_existing(const FileSystem& files, const FileSystem::Path& destination);

/// Refuses a job that is to be resumed but is done: Error(exists), which says how to tell whether
/// what is there came of `source_name`.
void refuse_finished(const FileSystem& files, const FileSystem::Path& destination,
                     const std::string& source_name);

/// Where a job writes until it is done.
FileSystem::Path staging_directory(const FileSystem::Path& destination, const std::string& job_id);

/// What jobs of the same destination but with another id left there, or are still writing.
std::vector<FileSystem::Path> left_by_other_jobs(const FileSystem& files,
                                                 const FileSystem::Path& destination,
                                                 const std::string& job_id);

/// Removes of that all directories which no job holds, and returns those.
std::vector<FileSystem::Path> discard_left_by_other_jobs(FileSystem& files,
                                                         const FileSystem::Path& destination,
                                                         const std::string& job_id);

/// A directory that is written under a temporary name beside its destination,
/// ".NAME.remesh-<job id>", locked while it is written, and renamed when it is whole. Destroyed
/// before publish(), it removes itself, unless it resumes.
class Staging {
 public:
  /// Throws Error(exists, "destination exists") if the destination is there, Error(busy, RM701) if
  /// another job holds the temporary directory, Error(exists) if an earlier job left one behind and
  /// `leftovers` says refuse (the message says `--discard`, and `--resume` if there is an
  /// identity), Error(unsafe) if it says resume and what is there is of a job with other options,
  /// another source or another version of remesh, Error(io) if the parent is no directory.
  /// `identity` is what must be the same for a job to be resumed; it is kept in the directory until
  /// publish().
  Staging(FileSystem& files, const FileSystem::Path& destination, const std::string& job_id,
          Leftovers leftovers, const std::string& identity = {});
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging();

  const FileSystem::Path& directory() const noexcept { return directory_; }

  /// Throws Error(io, RM702), which names both numbers, if the file system has less room than this.
  /// What was left behind has its room already, and nobody knows how much: then it does not ask.
  void check_room(std::int64_t needed_bytes) const;

  /// Syncs the directory, renames it, syncs the parent. After the rename a failure to sync is
  /// Error(io): "visible, durability unknown". Returns whether directories could be synced.
  bool publish();

 private:
  void remove_quietly() noexcept;

  FileSystem& files_;
  FileSystem::Path destination_;
  FileSystem::Path directory_;
  std::unique_ptr<DirectoryLock> lock_;
  bool published_ = false;
  bool kept_ = false;     // for a job that resumes
  bool resumes_ = false;  // something was there
};

}  // namespace remesh
