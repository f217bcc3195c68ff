#include "finding_text.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "text.hpp"

namespace remesh {
namespace {

std::string severity_word(Severity severity, const Output& out) {
  const std::string word = fmt::format("{:<5}", to_string(severity));
  if (severity == Severity::error) return out.bad(word);
  return severity == Severity::warn ? out.warned(word) : word;
}

// "shard-00001-of-00004.h5 bytes [4096, 8192), 'model.norm.weight' [0, 64)"; empty if nowhere.
std::string place_of(const Finding& finding) {
  std::string place = escaped(finding.file);
  if (finding.bytes) {
    place += fmt::format(" bytes [{}, {})", finding.bytes->begin, finding.bytes->end);
  }
  if (!finding.tensor.empty()) {
    place += fmt::format("{}'{}'", place.empty() ? "" : ", ", escaped(finding.tensor));
  }
  if (finding.box) place += fmt::format(" {}", to_string(*finding.box));
  return place;
}

std::string found_and_expected(const Finding& finding) {
  std::vector<std::string> parts;
  if (!finding.found.empty()) parts.push_back("found " + escaped(finding.found));
  if (!finding.expected.empty()) parts.push_back("expected " + escaped(finding.expected));
  return joined(parts);
}

std::int64_t count(std::span<const Finding> findings, Severity severity) {
  return std::ranges::count(findings, severity, &Finding::severity);
}

}  // namespace

void print_finding(const Finding& finding, Output& out) {
  const std::string place = place_of(finding);
  const std::string head =
      fmt::format("  {} {}  ", severity_word(finding.severity, out), finding.id);
  const std::string_view indent = "               ";
  if (place.empty()) {
    out.line(head + escaped(finding.message));
  } else {
    out.line(head + place);
    out.line(fmt::format("{}{}", indent, escaped(finding.message)));
  }
  const std::string facts = found_and_expected(finding);
  if (!facts.empty()) out.line(fmt::format("{}{}", indent, facts));
  if (!finding.next_step.empty()) {
    out.line(fmt::format("{}-> {}", indent, escaped(finding.next_step)));
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
