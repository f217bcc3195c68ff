#pragma once

#include <string>
#include <vector>

#include "ignores.hpp"
#include "judgement.hpp"
#include "project_file.hpp"
#include "session.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace remesh {

/// What a command with findings takes besides: when it fails, and what it ignores.
struct ReportOptions {
  std::string fail_on;
  std::vector<std::string> ignore;
  std::string config;
};

/// --fail-on, --ignore, --config.
void add_report_options(CLI::App& verb, ReportOptions& options);

/// How a command with findings ends: what of them counts, and whether that is failure.
///
///     const Reports reports(options.reports, session);  // before any work
///     verdict.ignored = reports.take_ignored(verdict.report.findings, sides);
///     verdict.failed = reports.fail(verdict.report.findings);
class Reports {
 public:
  /// Reads remesh.toml. Throws Error(invalid_argument) for what cannot be meant.
  Reports(const ReportOptions& options, const Session& session);

  /// The one that was asked for, or that of remesh.toml, or the usual one.
  std::string level(const std::string& asked_for, const std::string& usual) const;

  /// Takes out of `findings` what is to be ignored. Of a side that could not be opened nothing is:
  /// it never becomes well by being ignored.
  Ignored take_ignored(std::vector<Finding>& findings, std::span<const Side> sides) const;

  /// Whether such findings are at or above --fail-on.
  bool fail(std::span<const Finding> findings) const;

 private:
  ProjectFile project_;
  Severity fail_from_ = Severity::error;
  std::vector<IgnoreRule> rules_;
};

}  // namespace remesh
