#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "remesh/store/file_system.hpp"

namespace remesh {

/// The files of one job that is writing: opened when they are asked for, at most `most` at a time.
/// Thread-safe. For writers.
class OpenFiles {
 public:
  static constexpr std::size_t most_open = 512;

  /// `files` must outlive this.
  OpenFiles(FileSystem& files, std::vector<FileSystem::Path> paths, std::size_t most = most_open)
      : files_(files), paths_(std::move(paths)), most_(most) {}

  /// The file of that number, which stays open while the caller holds it. The one that was not
  /// asked for longest is synced and closed to make room: a failure to write it must not be lost
  /// with its descriptor.
  std::shared_ptr<File> get(std::uint32_t number);

  /// Syncs every file. Throws Error(io).
  void sync_all();

  /// Every file's File::forget_cache.
  void forget_caches();

 private:
  struct Open {
    std::uint32_t number = 0;
    std::shared_ptr<File> file;
  };

  FileSystem& files_;
  const std::vector<FileSystem::Path> paths_;
  const std::size_t most_;
  std::mutex mutex_;
  std::list<Open> open_;  // the last asked for comes first
  std::unordered_map<std::uint32_t, std::list<Open>::iterator> by_number_;
};

}  // namespace remesh
