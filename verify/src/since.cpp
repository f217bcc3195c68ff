#include "since.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

namespace remesh::detail {
namespace {

using Tensors = std::vector<std::size_t>;

// The tensors of two saves by their names.
class Matched {
 public:
  Matched(const ReadNumbers& now, const ReadNumbers& before) : now_(now), before_(before) {
    std::unordered_map<std::string_view, std::size_t> earlier;
    const auto& all = before.reader.catalog().tensors;
    for (std::size_t k = 0; k < all.size(); ++k) earlier.emplace(all[k].name, k);
    std::vector<bool> met(all.size());
    kept.reserve(now.sound.size());
    for (std::size_t k = 0; k < now.sound.size(); ++k) {
      const auto found = earlier.find(now.desc(k).name);
      if (found == earlier.end()) {
        if (now.parameters[k] < 0) added_.push_back(k);
        continue;
      }
      met[found->second] = true;
      pair(k, found->second);
    }
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (met[k]) continue;
      const std::int64_t parameter = before.parameters[k];
      if (parameter < 0) absent_.push_back(k);
      // Who lacks the parameter too is told of that.
      if (parameter >= 0 && met[static_cast<std::size_t>(parameter)]) lost_states_.push_back(k);
    }
  }

  void report(std::vector<Finding>& findings) const {
    if (!absent_.empty()) {
      findings.push_back(
          mismatch("RM302", Severity::error, before_, absent_,
                   fmt::format("the earlier save has {} tensors that this one lacks: {}{}",
                               absent_.size(), listed(before_, absent_), nothing_common())));
    }
    if (!lost_states_.empty()) {
      Finding lost = mismatch(
          "RM309", Severity::warn, before_, lost_states_,
          fmt::format("the earlier save has {} tensors of optimizer state that this one lacks: {}; "
                      "what resumes from it starts without them",
                      lost_states_.size(), listed(before_, lost_states_)));
      lost.next_step = "look for the optimizer of this save, unless it was left out on purpose";
      findings.push_back(std::move(lost));
    }
    if (!added_.empty()) {
      findings.push_back(
          mismatch("RM310", Severity::warn, now_, added_,
                   fmt::format("this save has {} tensors that the earlier one lacks: {}",
                               added_.size(), listed(now_, added_))));
    }
    if (!reshaped_.empty()) {
      findings.push_back(mismatch(
          "RM303", Severity::error, now_, reshaped_,
          fmt::format("{} tensors have another shape than in the earlier save: {}; it is of "
                      "another model, or was resized since",
                      reshaped_.size(), listed(now_, reshaped_))));
    }
    if (!cast_.empty()) {
      findings.push_back(
          mismatch("RM303", Severity::note, now_, cast_,
                   fmt::format("{} tensors have another dtype than in the earlier save, and were "
                               "not compared with it: {}",
                               cast_.size(), listed(now_, cast_))));
    }
  }

  std::vector<Kept> kept;

 private:
  void pair(std::size_t now, std::size_t before) {
    const TensorDesc& later = now_.desc(now);
    const TensorDesc& earlier = before_.desc(before);
    if (later.extent != earlier.extent) {
      reshaped_.push_back(now);
    } else if (later.dtype != earlier.dtype) {
      cast_.push_back(now);
    } else if (now_.sound[now] && before_.sound[before] && !later.extent.empty()) {
      kept.push_back({now, before, now_.digests[now] != before_.digests[before]});
    }
  }

  std::string_view nothing_common() const {
    return kept.empty() && reshaped_.empty() && cast_.empty()
               ? "; no tensor is in both: it is another model"
               : "";
  }

  static Finding mismatch(const char* id, Severity severity, const ReadNumbers& read,
                          const Tensors& tensors, std::string message) {
    Finding finding;
    finding.id = id;
    finding.severity = severity;
    name_tensors(finding, read, tensors);
    finding.message = std::move(message);
    finding.next_step = "compare with a save of the same run";
    return finding;
  }

  const ReadNumbers& now_;
  const ReadNumbers& before_;
  Tensors absent_;       // of the earlier catalog
  Tensors lost_states_;  // likewise
  Tensors added_;
  Tensors reshaped_;
  Tensors cast_;
};

// A mean of squares that was not zero does not come back to it: someone began anew.
void check_zeroed(const TwoSaves& saves, std::vector<Finding>& findings) {
  Tensors zeroed;
  for (const Kept& kept : saves.kept) {
    const bool is_mean = saves.now.state(kept.now) == "exp_avg_sq";
    if (is_mean && saves.now.all_zero(kept.now) && !saves.before.all_zero(kept.before)) {
      zeroed.push_back(static_cast<std::size_t>(saves.now.parameters[kept.now]));
    }
  }
  const bool known = std::ranges::any_of(findings, [](const Finding& finding) {
    return finding.id == "RM503" && finding.severity == Severity::error;
  });
  if (zeroed.empty() || known) return;
  std::erase_if(findings, [](const Finding& finding) { return finding.id == "RM503"; });
  Finding finding;
  finding.id = "RM503";
  name_tensors(finding, saves.now, zeroed);
  finding.found = fmt::format("{} zeroed", zeroed.size());
  finding.expected = "none that was not zero before";
  finding.message = fmt::format(
      "exp_avg_sq of {} parameters is all zero, and was not in the earlier save: {}; a mean of "
      "squares does not come back to zero: these moments were lost",
      zeroed.size(), listed(saves.now, zeroed));
  finding.next_step = "use the earlier save, or another copy of this one";
  findings.push_back(std::move(finding));
}

}  // namespace

void check_since(const JudgeContext& context, const ReadNumbers& now, const ReadNumbers& before,
                 const NamedSteps& named, Report& report) {
  Matched matched(now, before);
  matched.report(report.findings);
  const TwoSaves saves{now, before, std::move(matched.kept)};
  Since since;
  since.step = said_step(now);
  if (!since.step) since.step = named.now;
  since.previous_step = said_step(before);
  if (!since.previous_step) since.previous_step = named.previous;
  since.compared = std::ssize(saves.kept);
  since.changed = std::ranges::count_if(saves.kept, &Kept::changed);
  report.since = since;
  check_unchanged(saves, since, named, report.findings);
  check_zeroed(saves, report.findings);
  check_ranges(context, saves, report.findings);
}

}  // namespace remesh::detail
