#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "remesh/verify/verify.hpp"

namespace remesh::detail {

/// One checkpoint, judged by itself: what is wrong with it, and its tensors' digests.
struct Judged {
  std::unique_ptr<Reader> reader;  ///< null if it could not be opened
  Report report;
  std::vector<Digest> digests;  ///< in catalog order; empty if there are none to be had
};

/// Judges one checkpoint. `want_digests`: recompute them even where `level` would not. `subset`:
/// read that part alone.
Judged judge(const JudgeContext& context, const Suspect& suspect, Level level, bool want_digests,
             const std::optional<Subset>& subset = std::nullopt);

/// Orders findings by file, offset, tensor, id.
void sort_findings(std::vector<Finding>& findings);

}  // namespace remesh::detail
