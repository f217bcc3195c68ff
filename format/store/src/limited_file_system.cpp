#include "remesh/store/limited_file_system.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

namespace remesh {

// Deals time: each read gets the stretch that its bytes need, behind all that were asked for
// before.
class LimitedFileSystem::Rate {
 public:
  using Clock = std::chrono::steady_clock;

  Rate(std::int64_t bytes_per_second, const StopFlag* stop)
      : bytes_per_second_(bytes_per_second), stop_(stop) {}

  // Returns when that many bytes may have been read, or somebody asked to stop: whoever reads looks
  // for that himself, and a read that failed would be taken for one of a damaged medium.
  void take(std::size_t bytes) {
    if (bytes_per_second_ <= 0) return;
    const std::chrono::duration<double> needed(static_cast<double>(bytes) /
                                               static_cast<double>(bytes_per_second_));
    std::unique_lock lock(mutex_);
    free_at_ =
        std::max(free_at_, Clock::now()) + std::chrono::duration_cast<Clock::duration>(needed);
    const Clock::time_point mine = free_at_;
    lock.unlock();
    wait_until(mine);
  }

 private:
  void wait_until(Clock::time_point end) const {
    constexpr std::chrono::milliseconds look(50);
    for (Clock::time_point now = Clock::now(); now < end; now = Clock::now()) {
      if (stop_ != nullptr && stop_->signal() != 0) return;
      std::this_thread::sleep_until(std::min(end, now + look));
    }
  }

  const std::int64_t bytes_per_second_;
  const StopFlag* const stop_;
  std::mutex mutex_;
  Clock::time_point free_at_;
};

class LimitedFileSystem::LimitedFile final : public File {
 public:
  LimitedFile(std::unique_ptr<File> inner, std::shared_ptr<Rate> rate)
      : inner_(std::move(inner)), rate_(std::move(rate)) {}

  void read_at(std::int64_t offset, std::span<std::byte> into) const override {
    rate_->take(into.size());
    inner_->read_at(offset, into);
  }
  void write_at(std::int64_t offset, std::span<const std::byte> from) override {
    inner_->write_at(offset, from);
  }
  std::int64_t size_bytes() const override { return inner_->size_bytes(); }
  void sync() override { inner_->sync(); }
  void forget_cache() noexcept override { inner_->forget_cache(); }

 private:
  std::unique_ptr<File> inner_;
  std::shared_ptr<Rate> rate_;
};

LimitedFileSystem::LimitedFileSystem(FileSystem& inner, std::int64_t bytes_per_second,
                                     const StopFlag* stop)
    : ForwardingFileSystem(inner), rate_(std::make_shared<Rate>(bytes_per_second, stop)) {}

LimitedFileSystem::~LimitedFileSystem() = default;

std::unique_ptr<File> LimitedFileSystem::open(const Path& path) const {
  return std::make_unique<LimitedFile>(inner().open(path), rate_);
}

}  // namespace remesh
