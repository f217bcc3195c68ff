#include "remesh/verify/verify.hpp"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "compare.hpp"
#include "judge.hpp"
#include "number_checks.hpp"
#include "remesh/core/error.hpp"
#include "since.hpp"

namespace remesh {
namespace {

// Whether the recorded digests must be made up for: nothing is compared with nothing.
bool records_digests(const detail::Judged& judged) {
  return judged.reader && !judged.reader->catalog().digests.empty();
}

detail::Judged judge_side(const JudgeContext& context, const Suspect& suspect, Level level,
                          const char* side) {
  detail::Judged judged = detail::judge(context, suspect, level, {});
  if (level < Level::full && judged.reader && !records_digests(judged)) {
    judged = detail::judge(context, suspect, level, {.digests = true});
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

// What is wrong with an earlier save is not asked, but where it is damaged it cannot be compared.
void report_damage(const std::vector<Finding>& damage, std::vector<Finding>& findings) {
  const auto first = std::ranges::find(damage, Severity::error, &Finding::severity);
  if (first == damage.end()) return;
  Finding finding;
  finding.id = first->id;
  finding.severity = Severity::warn;
  finding.message = fmt::format(
      "the earlier save is damaged itself, and what is damaged there was not compared; the first "
      "of {} findings: {}",
      damage.size(), first->message);
  finding.next_step = "`remesh verify` of the earlier save says more";
  findings.push_back(std::move(finding));
}

}  // namespace

Report verify(const JudgeContext& context, const Suspect& suspect, Level level,
              const std::optional<Subset>& subset) {
  if (subset) check_subset(*subset, level);
  return detail::judge(context, suspect, level, {.subset = subset}).report;
}

Report verify_against(const JudgeContext& context, const Suspect& left_suspect,
                      const Suspect& right_suspect, Level level) {
  const detail::Judged left = judge_side(context, left_suspect, level, "left");
  const detail::Judged right = judge_side(context, right_suspect, level, "right");
  Report report = merged(left, right);
  if (left.reader && right.reader) detail::compare(context, left, right, report);
  return report;
}

Report verify_since(const JudgeContext& context, const Suspect& suspect,
                    std::unique_ptr<Reader> previous, Level level, const NamedSteps& named) {
  detail::Judged later = detail::judge(context, suspect, level, {.numbers = true});
  if (!later.reader) return std::move(later.report);
  const detail::Judged earlier = detail::read_all(context, std::move(previous));
  Report& report = later.report;
  const detail::ReadNumbers now =
      detail::read_numbers(*later.reader, *later.numbers, later.digests, report.findings);
  const detail::ReadNumbers before = detail::read_numbers(*earlier.reader, *earlier.numbers,
                                                          earlier.digests, earlier.report.findings);
  if (level < Level::deep) detail::check_finite(now, report.findings);
  report.bytes_read += earlier.report.bytes_read;
  report_damage(earlier.report.findings, report.findings);
  detail::check_since(context, now, before, named, report);
  detail::sort_findings(report.findings);
  return std::move(report);
}

std::vector<Digest> tensor_digests(const JudgeContext& context, const Reader& reader) {
  return detail::recomputed_digests(context, reader);
}

}  // namespace remesh
