#include "reports.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "github_report.hpp"
#include "html_report.hpp"
#include "junit_report.hpp"
#include "remesh/core/error.hpp"
#include "report_file.hpp"
#include "sarif_report.hpp"
#include "text.hpp"

namespace remesh {
namespace {

constexpr std::int64_t most_project_bytes = std::int64_t{1} << 20;

ProjectFile project_file(const std::string& config, const FileSystem& files) {
  if (config == "none") return {};
  const std::string path = config.empty() ? "remesh.toml" : config;
  if (!files.look(path)) {
    if (config.empty()) return {};
    throw Error(Errc::invalid_argument,
                fmt::format("cannot read `--config {}`: there is nothing of that name", config));
  }
  return parse_project_file(read_text(files, path, most_project_bytes), path);
}

using Given = std::pair<std::string, std::string>;  // flag, value

std::vector<Given> files_of(const ReportOptions& options) {
  return {{"--junit", options.junit}, {"--sarif", options.sarif}, {"--html", options.html}};
}

void check_files(const ReportOptions& options, std::span<const std::string> judged) {
  const std::vector<Given> files = files_of(options);
  for (auto file = files.begin(); file != files.end(); ++file) {
    if (file->second.empty()) continue;
    check_report_path(file->first, file->second, judged);
    const auto twice = std::find_if(files.begin(), file, [&](const Given& other) {
      return !other.second.empty() && is_same_place(other.second, file->second);
    });
    if (twice == file) continue;
    throw Error(Errc::invalid_argument, fmt::format("`{}` and `{}` name the same file, '{}'",
                                                    twice->first, file->first, file->second));
  }
}

std::string json_text(const Json& document) {
  return document.dump(1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

// A page is for people, who read the message where the command ended.
void tell_without_verdict(const ReportOptions& options, const NoVerdict& none) {
  if (is_for_github(options.annotations)) Output(TalkOptions{}).warn(github_annotation(none));
  if (!options.junit.empty()) write_report(options.junit, junit_report(none));
  if (!options.sarif.empty()) write_report(options.sarif, json_text(sarif_report(none)));
}

}  // namespace

void add_report_options(CLI::App& verb, ReportOptions& options) {
  const std::string group = "Findings";
  verb.add_option("--fail-on", options.fail_on,
                  "error or warn: from which severity on to exit 1 [error]")
      ->check(CLI::IsMember({"error", "warn"}))
      ->group(group);
  verb.add_option(
          "--ignore", options.ignore,
          "count these findings, but do not fail: RM541, or RM541:GLOB over the name of the "
          "tensor or file; may be repeated")
      ->type_name("ID[:GLOB]")
      ->expected(1)
      ->take_all()
      ->group(group);
  verb.add_option("--config", options.config,
                  "what to ignore, with reasons and dates; none: nothing [remesh.toml, if it is "
                  "there]")
      ->type_name("FILE")
      ->group(group);
  verb.add_option("--junit", options.junit, "write a report in JUnit's XML")
      ->type_name("FILE")
      ->group(group);
  verb.add_option("--sarif", options.sarif, "write a report in SARIF 2.1.0")
      ->type_name("FILE")
      ->group(group);
  verb.add_option("--html", options.html,
                  "write a report for people: one page that asks for nothing")
      ->type_name("FILE")
      ->group(group);
  verb.add_option("--annotations", options.annotations,
                  "auto, github or off: annotate on standard error, and append to the step's "
                  "summary; auto: where GITHUB_ACTIONS is true [auto]")
      ->check(CLI::IsMember({"auto", "github", "off"}))
      ->group(group);
}

void refuse_report_options(const ReportOptions& options, const std::string& judging) {
  const std::vector<Given> given{
      {"--fail-on", options.fail_on},
      {"--ignore", options.ignore.empty() ? std::string() : options.ignore.front()},
      {"--config", options.config},
      {"--junit", options.junit},
      {"--sarif", options.sarif},
      {"--html", options.html},
      {"--annotations", options.annotations == "auto" ? std::string() : options.annotations}};
  const auto first =
      std::ranges::find_if(given, [](const Given& option) { return !option.second.empty(); });
  if (first == given.end()) return;
  throw Error(Errc::invalid_argument,
              fmt::format("`{}` is about findings, and there are none without `{}`", first->first,
                          judging));
}

Reports::Reports(const ReportOptions& options, std::vector<std::string> judged, Session& session)
    : options_(options), out_(session.out) {
  const std::string path = judged.front();
  judged.push_back(options.config.empty() ? "remesh.toml" : options.config);
  check_files(options, judged);
  // Should this run not come to a verdict, that of an earlier one must not stand for it.
  for (const auto& [flag, file] : files_of(options)) {
    if (!file.empty()) remove_report(file);
  }
  session.on_failure = [options, path, verb = session.verb, start = session.start,
                        written = written_](const Failure& failure) {
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (!*written) tell_without_verdict(options, {verb, path, taken.count(), failure});
  };
  project_ = project_file(options.config, session.files);
  const std::string fail_on = said_or("--fail-on", options.fail_on, project_.fail_on, "error");
  if (fail_on == "warn") fail_from_ = Severity::warn;
  rules_.reserve(options.ignore.size() + project_.ignores.size());
  for (const std::string& text : options.ignore) rules_.push_back(parse_ignore(text));
  rules_.insert(rules_.end(), project_.ignores.begin(), project_.ignores.end());
}

std::string Reports::level(const std::string& asked_for, const std::string& usual) const {
  return said_or("--level", asked_for, project_.level, usual);
}

// What the file decides for somebody who may not have it before his eyes is said.
std::string Reports::said_or(std::string_view flag, const std::string& asked_for,
                             const std::string& in_file, const std::string& usual) const {
  if (!asked_for.empty()) return asked_for;
  if (in_file.empty() || in_file == usual) return usual;
  out_.talk(fmt::format("remesh: note: `{} {}` is what {} says", flag, in_file,
                        options_.config.empty() ? "remesh.toml" : escaped(options_.config)));
  return in_file;
}

bool Reports::accepts(std::vector<Finding> findings) const {
  take_ignored(findings, rules_, today(), [](const Finding&) { return true; });
  return std::ranges::none_of(
      findings, [this](const Finding& finding) { return finding.severity >= fail_from_; });
}

void Reports::settle(Judgement& judgement) const {
  judgement.ignored =
      take_ignored(judgement.findings, rules_, today(),
                   [&](const Finding& finding) { return is_of_opened(finding, judgement.sides); });
  judgement.fail_from = fail_from_;
  judgement.failed = std::ranges::any_of(judgement.findings, [this](const Finding& finding) {
    return finding.severity >= fail_from_;
  });
}

void Reports::write(const Judgement& judgement, const Output& out) const {
  warn_of_rules(judgement.ignored, out);
  write_files(judgement);
  *written_ = true;
  if (!is_for_github(options_.annotations)) return;
  for (const std::string& line : github_annotations(judgement)) out.warn(line);
  if (!append_step_summary(step_summary(judgement))) {
    out.warn("remesh: warning: the summary of this step is full, so this is not in it");
  }
}

void Reports::write_files(const Judgement& judgement) const {
  if (!options_.junit.empty()) write_report(options_.junit, junit_report(judgement));
  if (!options_.sarif.empty()) write_report(options_.sarif, json_text(sarif_report(judgement)));
  if (!options_.html.empty()) write_report(options_.html, html_report(judgement));
}

}  // namespace remesh
