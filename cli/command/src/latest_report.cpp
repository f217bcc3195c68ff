#include "latest_report.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "finding_text.hpp"
#include "remesh/core/budget.hpp"
#include "run_report.hpp"
#include "text.hpp"
#include "verify_report.hpp"

namespace remesh {
namespace {

std::string path_of(const TrainingRun& run, const Latest& latest) {
  return (std::filesystem::path(latest.run_path) / run.entries[latest.found->entry].name).string();
}

// Of the gravest the one that is most likely the cause.
const Finding& first_reason(const Report& report) {
  return *std::ranges::min_element(report.findings, {}, [](const Finding& finding) {
    return std::pair(-static_cast<int>(finding.severity), std::string_view(finding.id));
  });
}

// What makes a checkpoint not whole.
std::vector<std::string> reason_ids(const Report& report, Severity fail_from) {
  std::set<std::string> ids;
  for (const Finding& finding : report.findings) {
    if (finding.severity >= fail_from) ids.insert(finding.id);
  }
  return {ids.begin(), ids.end()};
}

// The message, and where, if it does not say that itself.
std::string placed(const Finding& finding) {
  const bool is_said = finding.message.find(finding.file) != std::string::npos;
  return fmt::format("{}{}{}", is_said ? "" : escaped(finding.file), is_said ? "" : ": ",
                     escaped(finding.message));
}

std::string rejection(const Latest& latest, const Found& found) {
  const Finding& first = first_reason(found.report);
  const std::int64_t alike = found.report.count(first.severity);
  const char* const word = first.severity == Severity::error ? "error" : "warning";
  return fmt::format("not whole: {}: {}: {}{}", escaped(found.name),
                     joined(reason_ids(found.report, latest.fail_from)),
                     alike > 1 ? fmt::format("{}, the first: ", counted(alike, word)) : "",
                     placed(first));
}

// Others that may be called the newest with the same right.
std::vector<std::string> ties(const TrainingRun& run, const Latest& latest) {
  std::vector<std::string> names;
  if (!latest.found) return names;
  const RunEntry& taken = run.entries[latest.found->entry];
  for (std::size_t k = 0; k < run.entries.size(); ++k) {
    const RunEntry& entry = run.entries[k];
    const bool is_other = k != latest.found->entry && !entry.is_leftover;
    if (!is_other || entry.step != taken.step) continue;
    const bool is_rejected =
        std::ranges::find(latest.rejected, k, &Found::entry) != latest.rejected.end();
    if (!is_rejected) names.push_back(entry.name);
  }
  return names;
}

void tell_ties(const TrainingRun& run, const Latest& latest, const Output& out) {
  std::vector<std::string> names = ties(run, latest);
  if (names.empty()) return;
  // A name may mean one that is newer: who asks for the path alone must know, too.
  std::ranges::transform(names, names.begin(),
                         [](const std::string& name) { return escaped(name); });
  const auto step = run.entries[latest.found->entry].step;
  out.warn(fmt::format("{}, too: {}; the first by name that is whole was taken",
                       step ? fmt::format("of step {}", *step) : "of no known step",
                       joined(names)));
}

Json rejected_json(const TrainingRun& run, const Latest& latest, const Found& found) {
  return {{"name", found.name},
          {"step", step_json(run.entries[found.entry].step)},
          {"format", text_or_null(found.side.format)},
          {"errors", found.report.count(Severity::error)},
          {"ids", reason_ids(found.report, latest.fail_from)},
          {"first", json_of(first_reason(found.report))}};
}

Json found_json(const TrainingRun& run, const Found& found) {
  return {{"name", found.name},
          {"step", step_json(run.entries[found.entry].step)},
          {"format", found.side.format},
          {"mesh", found.side.mesh ? json_of(*found.side.mesh) : Json(nullptr)},
          {"tensors", found.report.tensors},
          {"findings", json_of(found.report.findings)}};
}

const Finding& first_warning(const Report& report) {
  return *std::ranges::find(report.findings, Severity::warn, &Finding::severity);
}

// Newest first.
std::vector<const Found*> judged_of(const Latest& latest) {
  std::vector<const Found*> all;
  for (const Found& found : latest.rejected) all.push_back(&found);
  if (latest.found) all.push_back(&*latest.found);
  return all;
}

// As they were before they were put into a judgement of several.
std::vector<Finding> findings_of(const std::string& side, const Judgement& judgement) {
  std::vector<Finding> all;
  for (const Finding& finding : judgement.findings) {
    if (finding.side != side) continue;
    all.push_back(finding);
    all.back().side.clear();
  }
  return all;
}

void add_judged(const Found& found, Judgement& judgement) {
  judgement.sides.push_back(found.side);
  const bool opened = found.side.opened;
  judgement.groups.push_back(
      {found.side.name, found.side.name, opened ? families_of(found.report) : std::string()});
  for (Finding finding : found.report.findings) {
    finding.side = found.side.name;
    judgement.findings.push_back(std::move(finding));
  }
}

}  // namespace

Judgement judgement_of(const Latest& latest) {
  Judgement judgement;
  judgement.verb = "latest";
  judgement.title = latest.run_path;
  judgement.sides.push_back({.path = latest.run_path, .opened = true});
  if (latest.found) {
    judgement.drawn = latest.found->side.name;
    judgement.numbers = latest.found->report.numbers;
  }
  for (const Found* found : judged_of(latest)) add_judged(*found, judgement);
  judgement.groups.push_back({"what pointers say", "", "1"});
  judgement.findings.insert(judgement.findings.end(), latest.findings.begin(),
                            latest.findings.end());
  judgement.seconds = latest.seconds;
  judgement.facts = {{"run", latest.run_path},
                     {"newest whole", latest.found ? latest.found->name : "none"},
                     {"level", std::string(to_string(latest.level))},
                     {"judged", counted(std::ssize(judgement.sides) - 1, "checkpoint")},
                     {"seconds", fmt::format("{:.2f}", latest.seconds)}};
  return judgement;
}

void settle(Judgement& judgement, Latest& latest) {
  latest.ignored = judgement.ignored;
  latest.findings = findings_of("", judgement);
  for (Found& found : latest.rejected) {
    found.report.findings = findings_of(found.side.name, judgement);
  }
  judgement.failed = !latest.found;
  for (const Found& found : latest.rejected) {
    std::ranges::find(judgement.groups, found.side.name, &CheckGroup::side)->verdict = "not whole";
  }
  if (!latest.found) return;
  latest.found->report.findings = findings_of(latest.found->side.name, judgement);
  judgement.fail_from = Severity::error;
  for (Finding& finding : judgement.findings) {
    finding.severity = std::min(finding.severity, Severity::warn);
  }
}

void print_latest(const TrainingRun& run, const Latest& latest, Output& out) {
  for (const Found& found : latest.rejected) {
    // Others may read it, and resume from it: whoever goes on from an older one must know.
    found.is_foreign ? out.warn(rejection(latest, found)) : out.talk(rejection(latest, found));
  }
  for (const Finding& finding : latest.findings) {
    out.talk(fmt::format("warning {}: {}", finding.id, escaped(finding.message)));
  }
  if (!latest.found) {
    out.warn(fmt::format("no checkpoint in '{}' is whole: {} judged at level {}",
                         escaped(latest.run_path), std::ssize(latest.rejected),
                         to_string(latest.level)));
    for (const std::string& line : ignored_lines(latest.ignored)) out.detail(line);
    return;
  }
  tell_ties(run, latest, out);
  const Found& found = *latest.found;
  out.detail(fmt::format(
      "{}  {}  ({}, {}, {}, {}, judged at level {})", out.good("ok"), escaped(found.name),
      found.side.mesh ? describe(*found.side.mesh) : "mesh unknown", found.side.format,
      run.entries[found.entry].step ? fmt::format("step {}", *run.entries[found.entry].step)
                                    : "step unknown",
      counted(found.report.tensors, "tensor"), to_string(latest.level)));
  if (const std::int64_t warnings = found.report.count(Severity::warn); warnings > 0) {
    out.warn(fmt::format("warning: {} found in '{}', the first {}: {}; `remesh verify` lists them",
                         counted(warnings, "thing") + (warnings == 1 ? " was" : " were"),
                         escaped(found.name), first_warning(found.report).id,
                         escaped(first_warning(found.report).message)));
  }
  if (found.report.bytes_unprotected > 0) {
    out.detail(fmt::format("  not protected: {} have no recorded digest",
                           format_bytes(found.report.bytes_unprotected)));
  }
  for (const std::string& line : ignored_lines(latest.ignored)) out.detail(line);
  out.line(path_of(run, latest));  // as it is: a script takes it
}

Json latest_json(const TrainingRun& run, const Latest& latest) {
  Json document = new_document("latest");
  document["run"] = latest.run_path;
  document["level"] = to_string(latest.level);
  document["path"] = latest.found ? Json(path_of(run, latest)) : Json(nullptr);
  document["checkpoint"] = latest.found ? found_json(run, *latest.found) : Json(nullptr);
  document["ties"] = ties(run, latest);
  Json rejected = Json::array();
  for (const Found& found : latest.rejected) rejected.push_back(rejected_json(run, latest, found));
  document["rejected"] = std::move(rejected);
  document["pointers"] = json_of(std::span(run.pointers));
  document["findings"] = json_of(latest.findings);
  add_ignored(document, latest.ignored);
  document["seconds"] = latest.seconds;
  return document;
}

}  // namespace remesh
