#include "remesh/store/open_files.hpp"

namespace remesh {

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

void OpenFiles::sync_all() {
  for (std::uint32_t number = 0; number < paths_.size(); ++number) get(number)->sync();
}

void OpenFiles::forget_caches() {
  for (std::uint32_t number = 0; number < paths_.size(); ++number) get(number)->forget_cache();
}

}  // namespace remesh
