#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace remesh {

/// Hears how far a job is. Implementations draw a bar, print lines, or do nothing (this one).
/// advance() is called from many threads; the rest from one.
class Progress {
 public:
  virtual ~Progress() = default;

  /// A stage begins ("reading", "checking"); `total_bytes` is what advance() will add up to.
  virtual void begin(std::string_view stage, std::int64_t total_bytes);
  virtual void advance(std::int64_t bytes);
  virtual void end();
};

/// A request to stop, set by a signal handler and looked at between panels, and while a read waits.
class StopFlag {
 public:
  /// Async-signal-safe. The first signal counts.
  void request(int signal) noexcept;
  /// 0, or the signal that asked.
  int signal() const noexcept { return signal_.load(std::memory_order_relaxed); }
  /// Throws Error(stopped) if a stop was asked for.
  void check() const;

 private:
  std::atomic<int> signal_{0};
};

}  // namespace remesh
