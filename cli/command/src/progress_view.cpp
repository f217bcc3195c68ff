#include "progress_view.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "json_parts.hpp"
#include "remesh/core/budget.hpp"

namespace remesh {
namespace {

using Clock = std::chrono::steady_clock;

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::min(seconds, 359999.0)));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

/// Counts, and decides when it is time to show something. A subclass shows it.
class Watching : public Progress {
 public:
  void begin(std::string_view stage, std::int64_t total_bytes) override {
    const std::lock_guard lock(mutex_);
    stage_ = stage;
    total_ = total_bytes;
    start_ = Clock::now();
    shown_ = start_;
    shown_percent_ = 0;
    bytes_.store(0);
  }

  void advance(std::int64_t bytes) override {
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    // Whoever cannot have the lock leaves the showing to the one who has.
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    const Clock::time_point now = Clock::now();
    const ProgressState state = state_at(now);
    if (!due(now - shown_, state.percent() - shown_percent_)) return;
    shown_ = now;
    shown_percent_ = state.percent();
    show(state);
  }

  void end() override {
    const std::lock_guard lock(mutex_);
    finish(state_at(Clock::now()));
  }

 protected:
  virtual bool due(Clock::duration since, int percent_since) const = 0;
  virtual void show(const ProgressState& state) = 0;
  virtual void finish(const ProgressState& state) = 0;

  static void write(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  }

 private:
  ProgressState state_at(Clock::time_point now) const {
    return {stage_, bytes_.load(), total_, std::chrono::duration<double>(now - start_).count()};
  }

  std::mutex mutex_;
  std::atomic<std::int64_t> bytes_{0};
  std::string stage_;
  std::int64_t total_ = 0;
  int shown_percent_ = 0;
  Clock::time_point start_;
  Clock::time_point shown_;
};

class Bar final : public Watching {
 public:
  Bar() = default;
  Bar(const Bar&) = delete;
  Bar& operator=(const Bar&) = delete;
  ~Bar() override { clear(); }

 private:
  bool due(Clock::duration since, int /*percent_since*/) const override {
    return since > std::chrono::milliseconds(100);
  }
  void show(const ProgressState& state) override {
    drawn_ = true;
    write(fmt::format("\r{}\x1b[K", bar_text(state)));
  }
  void finish(const ProgressState& /*state*/) override { clear(); }
  void clear() {
    if (std::exchange(drawn_, false)) write("\r\x1b[K");
  }

  bool drawn_ = false;
};

class Plain final : public Watching {
  bool due(Clock::duration since, int percent_since) const override {
    return since > std::chrono::seconds(10) ||
           (since > std::chrono::seconds(1) && percent_since >= 5);
  }
  void show(const ProgressState& state) override { write(fmt::format("{}\n", plain_text(state))); }
  void finish(const ProgressState& /*state*/) override {}
};

class JsonLines final : public Watching {
  bool due(Clock::duration since, int /*percent_since*/) const override {
    return since > std::chrono::milliseconds(500);
  }
  void show(const ProgressState& state) override { write(fmt::format("{}\n", json_text(state))); }
  void finish(const ProgressState& state) override { show(state); }
};

bool on_terminal() {
  const char* term = std::getenv("TERM");  // NOLINT(concurrency-mt-unsafe): before any thread
  return isatty(STDERR_FILENO) == 1 && (term == nullptr || std::string_view(term) != "dumb");
}

}  // namespace

int ProgressState::percent() const noexcept {
  if (total_bytes <= 0) return 100;
  const double share = static_cast<double>(bytes) / static_cast<double>(total_bytes);
  return static_cast<int>(std::clamp(share, 0.0, 1.0) * 100);
}

double ProgressState::bytes_per_second() const noexcept {
  return seconds > 0 ? static_cast<double>(bytes) / seconds : 0;
}

double ProgressState::seconds_left() const noexcept {
  const double rate = bytes_per_second();
  return rate > 0 ? static_cast<double>(std::max<std::int64_t>(total_bytes - bytes, 0)) / rate : 0;
}

std::string plain_text(const ProgressState& state) {
  return fmt::format("{} {}% {}/{} {}/s ETA {}", state.stage, state.percent(),
                     format_bytes(state.bytes), format_bytes(state.total_bytes),
                     format_bytes(static_cast<std::int64_t>(state.bytes_per_second())),
                     clock_text(state.seconds_left()));
}

std::string bar_text(const ProgressState& state) {
  constexpr int width = 24;
  const int full = state.percent() * width / 100;
  return fmt::format("{} [{:#<{}}{:.<{}}] {:3}%  {}/{}  {}/s  ETA {}", state.stage, "", full, "",
                     width - full, state.percent(), format_bytes(state.bytes),
                     format_bytes(state.total_bytes),
                     format_bytes(static_cast<std::int64_t>(state.bytes_per_second())),
                     clock_text(state.seconds_left()));
}

std::string json_text(const ProgressState& state) {
  const Json line{{"event", "progress"},
                  {"stage", state.stage},
                  {"bytes", state.bytes},
                  {"total_bytes", state.total_bytes},
                  {"seconds", state.seconds},
                  {"bytes_per_second", static_cast<std::int64_t>(state.bytes_per_second())}};
  return line.dump();
}

std::unique_ptr<Progress> make_progress(std::string_view mode, bool quiet) {
  if (mode == "auto") {
    if (quiet) return std::make_unique<Progress>();
    return make_progress(on_terminal() ? "bar" : "plain", quiet);
  }
  if (mode == "bar") return std::make_unique<Bar>();
  if (mode == "plain") return std::make_unique<Plain>();
  if (mode == "json") return std::make_unique<JsonLines>();
  return std::make_unique<Progress>();
}

}  // namespace remesh
