#pragma once

#include <memory>
#include <string>
#include <vector>

#include "numbers.hpp"
#include "remesh/verify/verify.hpp"

namespace remesh::detail {

/// One checkpoint, judged by itself: what is wrong with it, and its tensors' digests.
struct Judged {
  std::unique_ptr<Reader> reader;  ///< null if it could not be opened
  Report report;
  std::vector<Digest> digests;       ///< in catalog order; empty if there are none to be had
  std::unique_ptr<Numbers> numbers;  ///< null where they were not counted
};

/// What is to be known even where the level would not ask for it.
struct Wanted {
  bool digests = false;  ///< recompute them
  bool numbers = false;  ///< count them; at `full` or `deep`
};

/// Judges one checkpoint.
Judged judge(const JudgeContext& context, const Suspect& suspect, Level level, const Wanted& want);

/// Reads every byte of a checkpoint that was opened, and counts its numbers.
Judged read_all(const JudgeContext& context, std::unique_ptr<Reader> reader);

/// Orders findings by file, offset, tensor, id.
void sort_findings(std::vector<Finding>& findings);

}  // namespace remesh::detail
