#include "remesh/core/budget.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/checked.hpp"
#include "remesh/core/error.hpp"

namespace remesh {
namespace {

std::int64_t checked_limit(std::int64_t limit_bytes) {
  if (limit_bytes < MemoryBudget::least_bytes) {
    throw Error(
        Errc::out_of_memory,
        fmt::format("cannot work within {} bytes of memory: a job needs at least {}; say "
                    "`--memory {}MiB` or more (1MiB is 2^20 bytes, 1MB is 10^6)",
                    limit_bytes, MemoryBudget::least_bytes, MemoryBudget::least_bytes >> 20));
  }
  return limit_bytes;
}

}  // namespace

MemoryBudget::MemoryBudget(std::int64_t limit_bytes) : limit_(checked_limit(limit_bytes)) {}

MemoryBudget::Reservation::Reservation(Reservation&& other) noexcept
    : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

MemoryBudget::Reservation& MemoryBudget::Reservation::operator=(Reservation&& other) noexcept {
  Reservation mine(std::move(other));
  std::swap(budget_, mine.budget_);
  std::swap(bytes_, mine.bytes_);
  return *this;
}

MemoryBudget::Reservation::~Reservation() {
  if (budget_ != nullptr) budget_->release(bytes_);
}

MemoryBudget::Reservation MemoryBudget::reserve(std::int64_t bytes, std::string_view what) {
  if (bytes < 0) {
    throw Error(Errc::internal,
                fmt::format("cannot hold {}: {} bytes were asked for", what, bytes));
  }
  const std::scoped_lock lock(mutex_);
  const std::int64_t free_bytes = limit_ - used_;
  if (bytes > free_bytes) {
    throw Error(Errc::out_of_memory,
                fmt::format("cannot hold {}: it needs {} bytes, but {} of {} are free; "
                            "raise --memory",
                            what, bytes, free_bytes, limit_));
  }
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  return {*this, bytes};
}

std::int64_t MemoryBudget::used_bytes() const {
  const std::scoped_lock lock(mutex_);
  return used_;
}

std::int64_t MemoryBudget::peak_bytes() const {
  const std::scoped_lock lock(mutex_);
  return peak_;
}

void MemoryBudget::release(std::int64_t bytes) noexcept {
  const std::scoped_lock lock(mutex_);
  used_ -= bytes;
}

namespace {

struct Unit {
  std::string_view name;
  std::int64_t bytes;
};

constexpr std::array units{
    Unit{"", 1},
    Unit{"B", 1},
    Unit{"kB", 1'000},
    Unit{"KB", 1'000},
    Unit{"MB", 1'000'000},
    Unit{"GB", 1'000'000'000},
    Unit{"TB", 1'000'000'000'000},
    Unit{"PB", 1'000'000'000'000'000},
    Unit{"KiB", std::int64_t{1} << 10},
    Unit{"MiB", std::int64_t{1} << 20},
    Unit{"GiB", std::int64_t{1} << 30},
    Unit{"TiB", std::int64_t{1} << 40},
    Unit{"PiB", std::int64_t{1} << 50},
};

// "64m" and "64mb" may mean either: neither is taken, both are named.
std::string did_you_mean(std::string_view text, std::string_view unit) {
  constexpr std::string_view prefixes = "KMGTP";
  if (unit.empty()) return {};
  const char prefix = static_cast<char>(std::toupper(static_cast<unsigned char>(unit.front())));
  std::string rest(unit.substr(1));
  std::ranges::transform(rest, rest.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  const bool is_unit = rest.empty() || rest == "b" || rest == "i" || rest == "ib";
  if (prefixes.find(prefix) == std::string_view::npos || !is_unit) return {};
  const std::string_view number = text.substr(0, text.size() - unit.size());
  return fmt::format("; did you mean {}{}iB, or {}{}B, which is less?", number, prefix, number,
                     prefix);
}

// Cuts the leading digits off.
std::string_view take_digits(std::string_view& text) {
  const std::size_t length = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view digits = text.substr(0, length);
  text.remove_prefix(length);
  return digits;
}

// The digits after a point, in bytes, rounded down. Exact for any number of digits: dividing by ten
// and rounding down one digit after another, from the last to the first, rounds down once.
std::int64_t fraction_of(std::int64_t unit_bytes, std::string_view digits) {
  std::int64_t bytes = 0;
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
    bytes = ((*digit - '0') * unit_bytes + bytes) / 10;
  }
  return bytes;
}

std::optional<std::int64_t> total_bytes(std::string_view whole, std::string_view fraction,
                                        std::int64_t unit_bytes) {
  std::int64_t count = 0;
  const auto [end, status] = std::from_chars(whole.data(), whole.data() + whole.size(), count);
  if (status != std::errc{}) return std::nullopt;
  const auto bytes = checked_multiply(count, unit_bytes);
  return bytes ? checked_add(*bytes, fraction_of(unit_bytes, fraction)) : std::nullopt;
}

}  // namespace

std::int64_t parse_bytes(std::string_view text) {
  std::string_view rest = text;
  const std::string_view whole = take_digits(rest);
  const bool has_point = rest.starts_with('.');
  if (has_point) rest.remove_prefix(1);
  const std::string_view fraction = has_point ? take_digits(rest) : std::string_view{};
  const auto* const unit = std::ranges::find(units, rest, &Unit::name);

  const bool is_number = !whole.empty() && has_point == !fraction.empty();
  if (!is_number || unit == units.end() || (has_point && unit->bytes == 1)) {
    throw Error(
        Errc::invalid_argument,
        fmt::format("cannot read '{}' as a number of bytes: expected a number and a unit, "
                    "such as 4GiB, 1.5GB or 65536{}",
                    text, is_number && unit == units.end() ? did_you_mean(text, rest) : ""));
  }
  const auto bytes = total_bytes(whole, fraction, unit->bytes);
  if (!bytes) {
    throw Error(Errc::invalid_argument,
                fmt::format("cannot read '{}' as a number of bytes: it is 2^63 or more", text));
  }
  return *bytes;
}

std::string format_bytes(std::int64_t bytes) {
  constexpr std::int64_t kibi = 1024;
  constexpr std::array<std::string_view, 6> names{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes > -kibi && bytes < kibi) return fmt::format("{} B", bytes);

  const auto tenths = [](double value) { return std::llround(std::abs(value) * 10); };
  double value = static_cast<double>(bytes) / kibi;
  std::size_t unit = 0;
  while (tenths(value) >= kibi * 10) {
    value /= kibi;
    ++unit;
  }
  return fmt::format("{}{}.{} {}", bytes < 0 ? "-" : "", tenths(value) / 10, tenths(value) % 10,
                     names[unit]);
}

}  // namespace remesh
