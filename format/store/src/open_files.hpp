#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "remesh/store/file_system.hpp"

namespace remesh::native {

/// The files of one job that is writing: opened when they are asked for, at most `most` at a time.
/// Thread-safe.
class OpenFiles {
 public:
  OpenFiles(FileSystem& files, std::vector<FileSystem::Path> paths, std::size_t most = 512)
      : files_(files), paths_(std::move(paths)), most_(most) {}

  /// The file of that number, which stays open while the caller holds it. The one that was not
  /// asked for longest is synced and closed to make room: a failure to write it must not be lost
  /// with its descriptor.
  std::shared_ptr<File> get(std::uint32_t number);

  std::size_t size() const noexcept { return paths_.size(); }

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

}  // namespace remesh::native
