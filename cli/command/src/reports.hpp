#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ignores.hpp"
#include "judgement.hpp"
#include "project_file.hpp"
#include "session.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace remesh {

/// What a command with findings takes besides: when it fails, what it ignores, and in which forms
/// it tells.
struct ReportOptions {
  std::string fail_on;
  std::vector<std::string> ignore;
  std::string config;
  std::string junit;
  std::string sarif;
  std::string html;
  std::string annotations = "auto";
};

/// --fail-on, --ignore, --config, --junit, --sarif, --html, --annotations.
void add_report_options(CLI::App& verb, ReportOptions& options);

/// Throws Error(invalid_argument) if one of them was given, where nothing is judged: `judging` is
/// how that is asked for, "--check".
void refuse_report_options(const ReportOptions& options, const std::string& judging);

/// How a command with findings ends: what of them counts, whether that is failure, and all the
/// files that tell of it.
///
///     const Reports reports(options.reports, {options.path}, session);  // before any work
///     Judgement judgement = ...;                                        // sides, groups, findings
///     reports.settle(judgement);
///     ...                                                               // lines for people
///     reports.write(judgement);
class Reports {
 public:
  /// Looks whether reports can lie where they are wanted, and removes those of earlier runs. From
  /// then on, whatever ends the command before write() is done is told by all of them in place of a
  /// verdict (of HTML there is none then). Reads remesh.toml. `judged`: paths of checkpoints, in
  /// which nothing may be written, and of files; the first is what reports are named after. Throws
  /// Error(invalid_argument) for what cannot be meant, and as check_report_path().
  Reports(const ReportOptions& options, std::vector<std::string> judged, Session& session);

  /// The one that was asked for, or that of remesh.toml, which is then said on standard error, or
  /// the usual one.
  std::string level(const std::string& asked_for, const std::string& usual) const;

  /// Whether none of the findings about a side, which was opened, counts at or above --fail-on.
  bool accepts(std::vector<Finding> findings) const;

  /// From which severity on a finding is failure.
  Severity fail_from() const noexcept { return fail_from_; }

  /// Moves to `ignored` what is to be ignored, and fills in `fail_from`, and `failed` by what is
  /// left. Of a side that could not be opened nothing is ignored: it never becomes well so.
  void settle(Judgement& judgement) const;

  /// Writes the files that were asked for. On standard error it says which rules have expired or
  /// match nothing, and where GitHub runs us, annotates. Throws Error(io).
  void write(const Judgement& judgement, const Output& out) const;

 private:
  std::string said_or(std::string_view flag, const std::string& asked_for,
                      const std::string& in_file, const std::string& usual) const;
  void write_files(const Judgement& judgement) const;

  ReportOptions options_;
  const Output& out_;
  std::shared_ptr<bool> written_ = std::make_shared<bool>(false);
  ProjectFile project_;
  Severity fail_from_ = Severity::error;
  std::vector<IgnoreRule> rules_;
};

}  // namespace remesh
