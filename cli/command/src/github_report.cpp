#include "github_report.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

#include "escapes.hpp"
#include "explain_pages.hpp"
#include "finding_text.hpp"
#include "remesh/core/error.hpp"
#include "text.hpp"

namespace remesh {
namespace {

constexpr std::int64_t most_of_a_severity = 10;
constexpr std::size_t most_summary_bytes = std::size_t{200} << 10;
constexpr std::uintmax_t most_file_bytes = std::uintmax_t{1} << 20;
constexpr std::size_t most_cell_bytes = 1000;

// Read before any thread starts, and never changed by us.
std::string_view environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? std::string_view() : std::string_view(value);
}

std::string_view command_of(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warn:
      return "warning";
    case Severity::note:
      return "notice";
  }
  return "notice";
}

std::string_view title_of_page(std::string_view id) {
  const std::vector<Page> pages = all_pages();
  const auto page = std::ranges::find(pages, id, &Page::id);
  return page == pages.end() ? std::string_view() : page->title;
}

std::string command(Severity severity, std::string_view title, std::string_view message) {
  return fmt::format("::{} title={}::{}", command_of(severity), command_property(title),
                     command_message(message));
}

std::string annotation(const Finding& finding) {
  std::string text = place_of(finding);
  if (!text.empty()) text += ": ";
  text += finding.message;
  if (!finding.next_step.empty() && !finding.message.ends_with(finding.next_step)) {
    text += "\n" + finding.next_step;
  }
  return command(finding.severity, fmt::format("{} {}", finding.id, title_of_page(finding.id)),
                 text);
}

// As much of a text as a cell takes, cut between characters.
std::string_view shortened(std::string_view text) {
  if (text.size() <= most_cell_bytes) return text;
  std::size_t end = most_cell_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end);
}

std::string cell(std::string_view text) { return markdown_escaped(shortened(text)); }

std::string row_of(const Finding& finding) {
  return fmt::format("| {} | {} | {} | {} |\n", to_string(finding.severity), cell(finding.id),
                     cell(place_of(finding)), cell(finding.message));
}

std::string ignored_row(const Judgement& judgement, const Ignored::Taken& taken) {
  const IgnoreRule& rule = judgement.ignored.rules[taken.rule].rule;
  return fmt::format("| ignored{} | {} | {} | {} |\n",
                     rule.expires ? " until " + to_text(*rule.expires) : "", cell(taken.finding.id),
                     cell(place_of(taken.finding)),
                     cell(rule.reason.empty() ? taken.finding.message : rule.reason));
}

// Rows, until the table has become long; then how many there are besides.
void add_table(const Judgement& judgement, std::string& text) {
  const std::vector<const Finding*> findings = gravest_first(judgement);
  const std::size_t total = findings.size() + judgement.ignored.findings.size();
  if (total == 0) return;
  text += "\n| severity | finding | where | what |\n|---|---|---|---|\n";
  std::size_t shown = 0;
  const auto add = [&](const std::string& row) {
    if (text.size() + row.size() > most_summary_bytes) return;
    text += row;
    ++shown;
  };
  for (const Finding* finding : findings) add(row_of(*finding));
  for (const Ignored::Taken& taken : judgement.ignored.findings) add(ignored_row(judgement, taken));
  if (shown < total) text += fmt::format("\nand {} more\n", total - shown);
}

}  // namespace

bool is_for_github(std::string_view annotations) {
  if (annotations == "github") return true;
  return annotations == "auto" && environment("GITHUB_ACTIONS") == "true";
}

std::vector<std::string> github_annotations(const Judgement& judgement) {
  std::vector<std::string> lines;
  std::array<std::int64_t, 3> counts{};
  const auto add = [&](Severity severity, const std::string& line) {
    if (counts.at(static_cast<std::size_t>(severity))++ < most_of_a_severity) lines.push_back(line);
  };
  for (const Ignored::Rule& applied : judgement.ignored.rules) {
    const std::string trouble = trouble_with(applied);
    const Severity severity = applied.expired ? Severity::warn : Severity::note;
    if (!trouble.empty()) add(severity, command(severity, "remesh: ignored findings", trouble));
  }
  for (const Finding* finding : gravest_first(judgement)) {
    // Nothing is written for those that nobody will see.
    const bool is_shown =
        counts.at(static_cast<std::size_t>(finding->severity)) < most_of_a_severity;
    add(finding->severity, is_shown ? annotation(*finding) : std::string());
  }
  if (*std::ranges::max_element(counts) > most_of_a_severity) {
    lines.push_back(fmt::format("remesh: {}; the first {} of each severity are annotated",
                                count_line(judgement.findings, judgement.ignored),
                                most_of_a_severity));
  }
  return lines;
}

std::string github_annotation(const NoVerdict& none) {
  const Failure& failure = none.failure;
  return command(Severity::error,
                 fmt::format("remesh {}: no verdict{}{}", none.verb, failure.id.empty() ? "" : ", ",
                             failure.id),
                 fmt::format("{}: {}", none.path, failure.message));
}

std::string step_summary(const Judgement& judgement) {
  std::string text = fmt::format(
      "### {}: remesh {} {}\n\n{}\n\n| | |\n|---|---|\n", judgement.failed ? "FAIL" : "ok",
      judgement.verb, markdown_escaped(judgement.title),
      markdown_escaped(count_line(judgement.findings, judgement.ignored)));
  for (const auto& [name, value] : judgement.facts) {
    text += fmt::format("| {} | {} |\n", cell(name), cell(value));
  }
  for (const Ignored::Rule& applied : judgement.ignored.rules) {
    const std::string trouble = trouble_with(applied);
    if (!trouble.empty()) {
      text += fmt::format("\n{}: {}\n", applied.expired ? "warning" : "note", cell(trouble));
    }
  }
  add_table(judgement, text);
  return text + "\n";
}

bool append_step_summary(std::string_view text) {
  const std::string path(environment("GITHUB_STEP_SUMMARY"));
  if (path.empty()) return true;
  std::error_code none;
  const std::uintmax_t before = std::filesystem::file_size(path, none);
  if (!none && before + text.size() > most_file_bytes) return false;
  std::ofstream out(path, std::ios::binary | std::ios::app);
  out << text;
  out.close();
  if (!out) throw Error(Errc::io, fmt::format("cannot append the step summary to '{}'", path));
  return true;
}

}  // namespace remesh
