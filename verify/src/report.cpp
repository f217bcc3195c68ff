#include "remesh/verify/report.hpp"

#include <algorithm>

namespace remesh {

std::optional<Level> parse_level(std::string_view name) noexcept {
  for (const Level level : {Level::header, Level::quick, Level::full, Level::deep}) {
    if (to_string(level) == name) return level;
  }
  return std::nullopt;
}

std::string_view to_string(Level level) noexcept {
  switch (level) {
    case Level::header:
      return "header";
    case Level::quick:
      return "quick";
    case Level::full:
      return "full";
    case Level::deep:
      return "deep";
  }
  return "full";
}

std::int64_t Report::count(Severity severity) const noexcept {
  return std::ranges::count(findings, severity, &Finding::severity);
}

}  // namespace remesh
