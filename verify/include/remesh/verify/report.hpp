#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/core/dtype.hpp"
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

/// One of `count` parts of what is read: the files' bytes, dealt out so that each is in exactly
/// one.
struct Subset {
  std::int64_t number = 1;  ///< from 1 to count
  std::int64_t count = 1;

  friend bool operator==(const Subset&, const Subset&) = default;
};

/// What `deep` counted of the numbers of one tensor. Whole numbers, so that nothing of it depends
/// on layout or threads.
struct TensorNumbers {
  std::string name;
  DType dtype = DType::f32;
  std::int64_t elements = 0;
  std::int64_t zeros = 0;  ///< of either sign
  std::int64_t nans = 0;
  std::int64_t infinities = 0;
  std::int64_t denormals = 0;
  std::int64_t negatives = 0;  ///< below zero
  /// Of floats, the exponents of two of the smallest and the largest finite number that is not
  /// zero: 0 is that of 1.0 to 2.0. Nothing where there is no such number.
  std::optional<int> least_exponent;
  std::optional<int> most_exponent;

  friend bool operator==(const TensorNumbers&, const TensorNumbers&) = default;
};

/// The steps that two saves are said to be of, by the names of their directories.
struct NamedSteps {
  std::optional<std::int64_t> now;       ///< of the judged one
  std::optional<std::int64_t> previous;  ///< of the earlier one
};

/// What a checkpoint has in common with an earlier save.
struct Since {
  std::optional<std::int64_t> step;  ///< of the judged one, where it says it, or its name does
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
  /// At `deep`: of the tensors of the judged side whose numbers are counted and whose bytes are
  /// whole, in catalog order.
  std::vector<TensorNumbers> numbers;
  std::optional<Subset> subset;  ///< that alone was read
  /// Whether digests were recomputed from the bytes, or taken as recorded.
  bool recomputed = false;
  std::optional<Since> since;  ///< where it was held against an earlier save

  std::int64_t count(Severity severity) const noexcept;
};

}  // namespace remesh
