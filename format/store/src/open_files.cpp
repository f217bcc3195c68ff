#include "open_files.hpp"

namespace remesh::native {

std::shared_ptr<File> OpenFiles::get(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  if (const auto found = by_number_.find(number); found != by_number_.end()) {
    open_.splice(open_.begin(), open_, found->second);
    return open_.front().file;
  }
  while (open_.size() >= most_) {
    open_.back().file->sync();
    by_number_.erase(open_.back().number);
    open_.pop_back();
  }
  open_.push_front({number, files_.open_for_writing(paths_[number])});
  by_number_[number] = open_.begin();
  return open_.front().file;
}

}  // namespace remesh::native
