#pragma once

#include <cstddef>
#include <vector>

#include "number_checks.hpp"
#include "remesh/verify/report.hpp"

/// @file
/// What a save must have in common with an earlier one of the same run, and what must not be the
/// same. All of it are rules over counts and digests; only tensors that look wrong are read again.

namespace remesh::detail {

/// A tensor of both saves, of one dtype and shape, with elements, and sound in both.
struct Kept {
  std::size_t now = 0;     ///< its number in the later catalog
  std::size_t before = 0;  ///< in the earlier one
  bool changed = false;
};

/// Two saves of which every byte was read.
struct TwoSaves {
  const ReadNumbers& now;
  const ReadNumbers& before;
  std::vector<Kept> kept;  ///< in the order of the later catalog
};

/// Holds a save against an earlier one: adds what it tells to `report.findings`, and
/// `report.since`.
void check_since(const JudgeContext& context, const ReadNumbers& now, const ReadNumbers& before,
                 const NamedSteps& named, Report& report);

/// RM501: what training changes and is the same in both saves; steps that do not advance.
void check_unchanged(const TwoSaves& saves, const Since& since, const NamedSteps& named,
                     std::vector<Finding>& findings);

/// RM512: tensors whose numbers no step of training makes of those that were there: multiplied by a
/// power of two, far beyond the largest, zero or tiny where they were not. Counts alone tell
/// which tensors are worth to be read again.
void check_ranges(const JudgeContext& context, const TwoSaves& saves,
                  std::vector<Finding>& findings);

}  // namespace remesh::detail
