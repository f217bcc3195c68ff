#include "latest_report.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "finding_text.hpp"
#include "remesh/core/budget.hpp"
#include "run_report.hpp"
#include "text.hpp"

namespace remesh {
namespace {

std::string path_of(const TrainingRun& run, const Latest& latest) {
  return (std::filesystem::path(latest.run_path) / run.entries[latest.found->entry].name).string();
}

// Of the errors the one that is most likely the cause.
const Finding& first_error(const Report& report) {
  return *std::ranges::min_element(report.findings, {}, [](const Finding& finding) {
    return std::pair(-static_cast<int>(finding.severity), std::string_view(finding.id));
  });
}

std::vector<std::string> error_ids(const Report& report) {
  std::set<std::string> ids;
  for (const Finding& finding : report.findings) {
    if (finding.severity == Severity::error) ids.insert(finding.id);
  }
  return {ids.begin(), ids.end()};
}

// The message, and where, if it does not say that itself.
std::string placed(const Finding& finding) {
  const bool is_said = finding.message.find(finding.file) != std::string::npos;
  return fmt::format("{}{}{}", is_said ? "" : escaped(finding.file), is_said ? "" : ": ",
                     escaped(finding.message));
}

std::string rejection(const TrainingRun& run, const Found& found) {
  const std::int64_t errors = found.report.count(Severity::error);
  return fmt::format("not whole: {}: {}: {}{}", escaped(run.entries[found.entry].name),
                     joined(error_ids(found.report)),
                     errors > 1 ? fmt::format("{}, the first: ", counted(errors, "error")) : "",
                     placed(first_error(found.report)));
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
  std::ranges::transform(names, names.begin(),
                         [](const std::string& name) { return escaped(name); });
  const auto step = run.entries[latest.found->entry].step;
  out.talk(fmt::format("{}, too: {}; the first by name that is whole was taken",
                       step ? fmt::format("of step {}", *step) : "of no known step",
                       joined(names)));
}

Json rejected_json(const TrainingRun& run, const Found& found) {
  return {
      {"name", run.entries[found.entry].name}, {"step", step_json(run.entries[found.entry].step)},
      {"format", text_or_null(found.format)},  {"errors", found.report.count(Severity::error)},
      {"ids", error_ids(found.report)},        {"first", json_of(first_error(found.report))}};
}

Json found_json(const TrainingRun& run, const Found& found) {
  return {{"name", run.entries[found.entry].name},
          {"step", step_json(run.entries[found.entry].step)},
          {"format", found.format},
          {"mesh", found.mesh ? json_of(*found.mesh) : Json(nullptr)},
          {"tensors", found.report.tensors},
          {"findings", json_of(found.report.findings)}};
}

}  // namespace

const Finding& first_warning(const Report& report) {
  return *std::ranges::find(report.findings, Severity::warn, &Finding::severity);
}

void print_latest(const TrainingRun& run, const Latest& latest, Output& out) {
  for (const Found& found : latest.rejected) out.talk(rejection(run, found));
  for (const Finding& finding : latest.findings) {
    out.talk(fmt::format("warning {}: {}", finding.id, escaped(finding.message)));
  }
  if (!latest.found) {
    out.warn(fmt::format("no checkpoint in '{}' is whole: {} judged at level {}",
                         escaped(latest.run_path), std::ssize(latest.rejected),
                         to_string(latest.level)));
    return;
  }
  tell_ties(run, latest, out);
  const Found& found = *latest.found;
  out.detail(fmt::format("{}  {}  ({}, {}, {}, {}, judged at level {})", out.good("ok"),
                         escaped(run.entries[found.entry].name),
                         found.mesh ? describe(*found.mesh) : "mesh unknown", found.format,
                         run.entries[found.entry].step
                             ? fmt::format("step {}", *run.entries[found.entry].step)
                             : "step unknown",
                         counted(found.report.tensors, "tensor"), to_string(latest.level)));
  if (const std::int64_t warnings = found.report.count(Severity::warn); warnings > 0) {
    out.warn(fmt::format("warning: {} found in '{}', the first {}: {}; `remesh verify` lists them",
                         counted(warnings, "thing") + (warnings == 1 ? " was" : " were"),
                         escaped(run.entries[found.entry].name), first_warning(found.report).id,
                         escaped(first_warning(found.report).message)));
  }
  if (found.report.bytes_unprotected > 0) {
    out.detail(fmt::format("  not protected: {} have no recorded digest",
                           format_bytes(found.report.bytes_unprotected)));
  }
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
  for (const Found& found : latest.rejected) rejected.push_back(rejected_json(run, found));
  document["rejected"] = std::move(rejected);
  document["pointers"] = json_of(std::span(run.pointers));
  document["findings"] = json_of(latest.findings);
  document["seconds"] = latest.seconds;
  return document;
}

}  // namespace remesh
