#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/schema/finding.hpp"

namespace remesh {

/// How deep a judge looks.
enum class Level {
  header,  ///< names, sizes, coverage, recorded digests; no payload is read
  quick,   ///< and some blocks of every file: first, last, and one in a hundred
  full,    ///< and every byte
  deep,    ///< and what libhdf5 sees in the files that it can read
};

std::optional<Level> parse_level(std::string_view name) noexcept;
std::string_view to_string(Level level) noexcept;

/// What a checkpoint has in common with an earlier save.
struct Since {
  std::optional<std::int64_t> step;           ///< of the judged one, where it says it
  std::optional<std::int64_t> previous_step;  ///< of the earlier one
  std::int64_t compared = 0;  ///< tensors of one name, dtype and shape, sound in both
  std::int64_t changed = 0;   ///< of these

  friend bool operator==(const Since&, const Since&) = default;
};

/// What was found in one checkpoint, or between two.
struct Report {
  Level level = Level::full;
  std::vector<Finding> findings;       ///< ordered by file, offset, tensor, id
  std::int64_t tensors = 0;            ///< of the judged side: with --against, the left one
  std::int64_t files = 0;              ///< likewise
  std::int64_t bytes_read = 0;         ///< payload and guarded bytes, both sides
  std::int64_t bytes_unprotected = 0;  ///< payload for which the format records no digest
  std::int64_t views = 0;              ///< files that libhdf5 was asked about, both sides
  std::int64_t equal = 0;              ///< with --against: tensors that are the same
  std::int64_t compared = 0;           ///< with --against: tensors compared
  /// Whether digests were recomputed from the bytes, or taken as recorded.
  bool recomputed = false;
  std::optional<Since> since;  ///< where it was held against an earlier save

  std::int64_t count(Severity severity) const noexcept;
};

}  // namespace remesh
