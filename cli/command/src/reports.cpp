#include "reports.hpp"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "remesh/core/error.hpp"

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

// Whether what a finding is about was opened. One of no side is about both.
bool is_of_opened(const Finding& finding, std::span<const Side> sides) {
  for (std::size_t k = 0; k < sides.size(); ++k) {
    const bool is_meant = finding.side.empty() || (finding.side == "left") == (k == 0);
    if (is_meant && !sides[k].opened) return false;
  }
  return true;
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
}

Reports::Reports(const ReportOptions& options, const Session& session)
    : project_(project_file(options.config, session.files)) {
  const std::string& fail_on = options.fail_on.empty() ? project_.fail_on : options.fail_on;
  if (fail_on == "warn") fail_from_ = Severity::warn;
  rules_.reserve(options.ignore.size() + project_.ignores.size());
  for (const std::string& text : options.ignore) rules_.push_back(parse_ignore(text));
  rules_.insert(rules_.end(), project_.ignores.begin(), project_.ignores.end());
}

std::string Reports::level(const std::string& asked_for, const std::string& usual) const {
  if (!asked_for.empty()) return asked_for;
  return project_.level.empty() ? usual : project_.level;
}

Ignored Reports::take_ignored(std::vector<Finding>& findings, std::span<const Side> sides) const {
  return remesh::take_ignored(findings, rules_, today(),
                              [&](const Finding& finding) { return is_of_opened(finding, sides); });
}

bool Reports::fail(std::span<const Finding> findings) const {
  return std::ranges::any_of(
      findings, [this](const Finding& finding) { return finding.severity >= fail_from_; });
}

}  // namespace remesh
