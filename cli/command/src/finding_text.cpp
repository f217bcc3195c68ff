#include "finding_text.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "text.hpp"

namespace remesh {
namespace {

// Under the first word of a finding's text.
constexpr std::string_view indent = "               ";

std::string severity_word(Severity severity, const Output& out) {
  const std::string word = fmt::format("{:<5}", to_string(severity));
  if (severity == Severity::error) return out.bad(word);
  return severity == Severity::warn ? out.warned(word) : word;
}

std::int64_t count(std::span<const Finding> findings, Severity severity) {
  return std::ranges::count(findings, severity, &Finding::severity);
}

void print_finding(const Finding& finding, Output& out) {
  const std::string place = place_of(finding);
  const std::string head =
      fmt::format("  {} {}  ", severity_word(finding.severity, out), finding.id);
  if (place.empty()) {
    out.line(head + escaped(finding.message));
  } else {
    out.line(head + place);
    out.line(fmt::format("{}{}", indent, escaped(finding.message)));
  }
  const std::string facts = found_and_expected(finding);
  if (!facts.empty()) out.line(fmt::format("{}{}", indent, facts));
  if (!finding.next_step.empty() && !finding.message.ends_with(finding.next_step)) {
    out.line(fmt::format("{}-> {}", indent, escaped(finding.next_step)));
  }
}

}  // namespace

std::string place_of(const Finding& finding) {
  // The name of a file alone does not say of which checkpoint it is; of which of two, messages do.
  const bool of_two = finding.side == "left" || finding.side == "right";
  const bool of_side = !finding.side.empty() && !(of_two && finding.file.empty());
  std::string place = escaped(finding.file);
  if (finding.bytes) {
    place += fmt::format(" bytes [{}, {})", finding.bytes->begin, finding.bytes->end);
  }
  if (!finding.tensor.empty()) {
    place += fmt::format("{}'{}'", place.empty() ? "" : ", ", escaped(finding.tensor));
  }
  if (finding.box) place += fmt::format(" {}", to_string(*finding.box));
  if (!of_side) return place;
  return fmt::format("{}{}{}", escaped(finding.side), place.empty() ? "" : ": ", place);
}

std::string found_and_expected(const Finding& finding) {
  const auto is_said = [&](const std::string& fact) {
    return finding.message.find(fact) != std::string::npos;
  };
  if (is_said(finding.found) && is_said(finding.expected)) return {};
  std::vector<std::string> parts;
  if (!finding.found.empty()) parts.push_back("found " + escaped(finding.found));
  if (!finding.expected.empty()) parts.push_back("expected " + escaped(finding.expected));
  return joined(parts);
}

std::string finding_lines(const Finding& finding) {
  std::string text = fmt::format("{} {}", to_string(finding.severity), finding.id);
  const auto add = [&text](const std::string& before, const std::string& part) {
    if (!part.empty()) text += before + part;
  };
  add("  ", place_of(finding));
  add("\n  ", escaped(finding.message));
  add("\n  ", found_and_expected(finding));
  if (!finding.message.ends_with(finding.next_step)) add("\n  -> ", escaped(finding.next_step));
  return text;
}

void print_findings(std::span<const Finding> findings, Output& out) {
  std::vector<Finding> sorted(findings.begin(), findings.end());
  std::ranges::stable_sort(sorted, {}, &Finding::id);
  const std::size_t most = out.verbose() > 0 ? sorted.size() : 5;
  for (auto first = sorted.begin(); first != sorted.end();) {
    const auto last = std::ranges::find_if(
        first, sorted.end(), [&](const Finding& finding) { return finding.id != first->id; });
    const auto count = static_cast<std::size_t>(last - first);
    for (const Finding& finding : std::span(first, std::min(count, most))) {
      print_finding(finding, out);
    }
    if (count > most) {
      out.line(fmt::format("{}... and {} more of {}; -v lists them all", indent, count - most,
                           first->id));
    }
    first = last;
  }
}

std::string count_line(std::span<const Finding> findings) {
  std::vector<std::string> parts;
  if (const auto n = count(findings, Severity::error); n > 0) parts.push_back(counted(n, "error"));
  if (const auto n = count(findings, Severity::warn); n > 0) parts.push_back(counted(n, "warning"));
  if (const auto n = count(findings, Severity::note); n > 0) parts.push_back(counted(n, "note"));
  return parts.empty() ? "nothing found" : joined(parts);
}

}  // namespace remesh
