#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "remesh/store/file_system.hpp"

namespace remesh::safetensors {

/// Files that are written, at most `most_open` of them open at a time. Thread-safe.
class OpenFiles {
 public:
  static constexpr std::size_t most_open = 512;

  /// `files` must outlive this.
  OpenFiles(FileSystem& files, std::vector<FileSystem::Path> paths);

  /// Opens the file, if it is not open; it stays open while somebody holds the result.
  std::shared_ptr<File> get(std::uint32_t file);

 private:
  FileSystem& files_;
  const std::vector<FileSystem::Path> paths_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<File>> open_;  // by number
  std::deque<std::uint32_t> by_age_;         // those that are open, the oldest first
};

}  // namespace remesh::safetensors
