#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace remesh {

/// The memory that a job may hold, and a count of what it holds. Thread-safe.
class MemoryBudget {
 public:
  /// The least limit that a job can work with (decisions: 64 MiB).
  static constexpr std::int64_t least_bytes = std::int64_t{64} << 20;

  /// Throws Error(out_of_memory), which names both numbers, if `limit_bytes` < least_bytes.
  explicit MemoryBudget(std::int64_t limit_bytes);

  /// Bytes held until the reservation is destroyed. Must not outlive the budget.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(Reservation&& other) noexcept;
    Reservation& operator=(Reservation&& other) noexcept;
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;
    ~Reservation();

    std::int64_t bytes() const noexcept { return bytes_; }

   private:
    friend class MemoryBudget;
    Reservation(MemoryBudget& budget, std::int64_t bytes) : budget_(&budget), bytes_(bytes) {}

    MemoryBudget* budget_ = nullptr;
    std::int64_t bytes_ = 0;
  };

  /// Reserves at once, or throws Error(out_of_memory): "cannot hold <what>: it needs N bytes, but
  /// M of L are free; ...".
  [[nodiscard]] Reservation reserve(std::int64_t bytes, std::string_view what);

  std::int64_t limit_bytes() const noexcept { return limit_; }
  std::int64_t used_bytes() const;
  std::int64_t peak_bytes() const;

 private:
  void release(std::int64_t bytes) noexcept;

  const std::int64_t limit_;
  mutable std::mutex mutex_;
  std::int64_t used_ = 0;
  std::int64_t peak_ = 0;
};

/// "4GiB", "512MiB", "1.5GB", "65536" in bytes; binary units end in iB, decimal ones in B.
/// Part of a byte is dropped.
/// Throws Error(invalid_argument) for anything else, for a negative and for an overflow.
std::int64_t parse_bytes(std::string_view text);

/// A byte count for people: "1.5 GiB", "312 B".
std::string format_bytes(std::int64_t bytes);

}  // namespace remesh
