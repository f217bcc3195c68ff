#include "open_files.hpp"

#include <utility>

namespace remesh::safetensors {

OpenFiles::OpenFiles(FileSystem& files, std::vector<FileSystem::Path> paths)
    : files_(files), paths_(std::move(paths)), open_(paths_.size()) {}

std::shared_ptr<File> OpenFiles::get(std::uint32_t file) {
  const std::lock_guard lock(mutex_);
  if (!open_[file]) {
    if (by_age_.size() == most_open) {
      open_[by_age_.front()].reset();
      by_age_.pop_front();
    }
    open_[file] = files_.open_for_writing(paths_[file]);
    by_age_.push_back(file);
  }
  return open_[file];
}

}  // namespace remesh::safetensors
