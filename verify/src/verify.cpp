#include "remesh/verify/verify.hpp"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "compare.hpp"
#include "judge.hpp"
#include "remesh/core/error.hpp"

namespace remesh {
namespace {

// Whether the recorded digests must be made up for: nothing is compared with nothing.
bool records_digests(const detail::Judged& judged) {
  return judged.reader && !judged.reader->catalog().digests.empty();
}

detail::Judged judge_side(const JudgeContext& context, const Suspect& suspect, Level level,
                          const char* side) {
  detail::Judged judged = detail::judge(context, suspect, level, /*want_digests=*/false);
  if (level < Level::full && judged.reader && !records_digests(judged)) {
    judged = detail::judge(context, suspect, level, /*want_digests=*/true);
  }
  for (Finding& finding : judged.report.findings) finding.side = side;
  return judged;
}

Report merged(const detail::Judged& left, const detail::Judged& right) {
  Report report = left.report;
  const Report& other = right.report;
  report.findings.insert(report.findings.end(), other.findings.begin(), other.findings.end());
  report.bytes_read += other.bytes_read;
  report.bytes_unprotected += other.bytes_unprotected;
  report.views += other.views;
  report.recomputed = left.report.recomputed && right.report.recomputed;
  return report;
}

void check_subset(const Subset& subset, Level level) {
  if (subset.number < 1 || subset.number > subset.count) {
    throw Error(Errc::invalid_argument,
                fmt::format("cannot read part {} of {}: parts count from 1 to how many there are",
                            subset.number, subset.count));
  }
  if (level < Level::full) {
    throw Error(Errc::invalid_argument,
                fmt::format("cannot read a part at level {}: parts are of what full and deep read",
                            to_string(level)));
  }
}

}  // namespace

Report verify(const JudgeContext& context, const Suspect& suspect, Level level,
              const std::optional<Subset>& subset) {
  if (subset) check_subset(*subset, level);
  return detail::judge(context, suspect, level, /*want_digests=*/false, subset).report;
}

Report verify_against(const JudgeContext& context, const Suspect& left_suspect,
                      const Suspect& right_suspect, Level level) {
  const detail::Judged left = judge_side(context, left_suspect, level, "left");
  const detail::Judged right = judge_side(context, right_suspect, level, "right");
  Report report = merged(left, right);
  if (left.reader && right.reader) detail::compare(context, left, right, report);
  return report;
}

std::vector<Digest> tensor_digests(const JudgeContext& context, const Reader& reader) {
  return detail::recomputed_digests(context, reader);
}

}  // namespace remesh
