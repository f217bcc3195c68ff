#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "remesh/store/file_system.hpp"

namespace remesh {

/// A directory that is written under a temporary name beside its destination,
/// ".NAME.remesh-<job id>", locked while it is written, and renamed when it is whole. Destroyed
/// before publish(), it removes itself.
class Staging {
 public:
  /// Throws Error(exists, "destination exists") if the destination is there, Error(busy, RM701) if
  /// another job holds the temporary directory, Error(exists) if an earlier job left one behind and
  /// `discard_leftovers` is false (the message says `--discard`), Error(not_found) if the parent
  /// is no directory.
  Staging(FileSystem& files, const FileSystem::Path& destination, const std::string& job_id,
          bool discard_leftovers);
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging();

  const FileSystem::Path& directory() const noexcept { return directory_; }

  /// Throws Error(io, RM702), which names both numbers, if the file system has less room than this.
  void check_room(std::int64_t needed_bytes) const;

  /// Syncs the directory, renames it, syncs the parent. After the rename a failure to sync is
  /// Error(io): "visible, durability unknown". Returns whether directories could be synced.
  bool publish();

 private:
  FileSystem& files_;
  FileSystem::Path destination_;
  FileSystem::Path directory_;
  std::unique_ptr<DirectoryLock> lock_;
  bool published_ = false;
};

}  // namespace remesh
