#include "remesh/core/progress.hpp"

#include <fmt/format.h>

#include "remesh/core/error.hpp"

namespace remesh {

void Progress::begin(std::string_view /*stage*/, std::int64_t /*total_bytes*/) {}
void Progress::advance(std::int64_t /*bytes*/) {}
void Progress::end() {}

static_assert(std::atomic<int>::is_always_lock_free, "a signal handler must not wait");

void StopFlag::request(int signal) noexcept {
  int none = 0;
  signal_.compare_exchange_strong(none, signal, std::memory_order_relaxed);
}

void StopFlag::check() const {
  const int by = signal();
  if (by != 0) throw Error(Errc::stopped, fmt::format("cannot go on: signal {} asked to stop", by));
}

}  // namespace remesh
