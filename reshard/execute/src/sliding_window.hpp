#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <set>

namespace remesh::detail {

/// Keeps tasks that are under way close to each other: none begins before all that are `width` or
/// more in front of it have ended. The first of those under way never waits, so where tasks begin
/// in the order of their numbers, some task always runs on. Thread-safe.
class SlidingWindow {
 public:
  /// A task under way; it ends with this, whether it throws or not.
  class Stay {
   public:
    Stay(SlidingWindow& window, std::size_t index) : window_(window), index_(index) {}
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;
    ~Stay() { window_.leave(index_); }

   private:
    SlidingWindow& window_;
    const std::size_t index_;
  };

  /// Precondition: width >= 1.
  explicit SlidingWindow(std::size_t width) : width_(width) {}

  /// Waits until task `index` may begin. Each index enters once.
  [[nodiscard]] Stay enter(std::size_t index) {
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [&] { return index - first_ < width_; });
    return {*this, index};
  }

 private:
  void leave(std::size_t index) {
    {
      const std::lock_guard lock(mutex_);
      ended_.insert(index);
      while (!ended_.empty() && *ended_.begin() == first_) {
        ended_.erase(ended_.begin());
        ++first_;
      }
    }
    moved_.notify_all();
  }

  const std::size_t width_;
  std::mutex mutex_;
  std::condition_variable moved_;
  std::size_t first_ = 0;        // the first that has not ended
  std::set<std::size_t> ended_;  // of those behind it
};

}  // namespace remesh::detail
