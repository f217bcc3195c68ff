#include "sarif_report.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "escapes.hpp"
#include "explain_pages.hpp"
#include "finding_text.hpp"
#include "remesh/core/digest.hpp"
#include "text.hpp"
#include "versions.hpp"

namespace remesh {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_results = 25'000;

std::string_view level_of(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warn:
      return "warning";
    case Severity::note:
      return "note";
  }
  return "none";
}

// Braces stand for arguments, and "[text](target)" is a link, in a message of SARIF.
std::string message_text(std::string_view text) {
  std::string out;
  for (const char c : escaped_lines(text)) {
    if (c == '(' && out.ends_with(']')) out += ' ';
    out += c;
    if (c == '{' || c == '}') out += c;
  }
  return out;
}

Json rule_of(const Page& page) {
  const std::string help = fmt::format("{}\n\nWhy it matters: {}\nLikely cause: {}\nWhat to do: {}",
                                       page.what, page.why, page.cause, page.next);
  const std::string markdown =
      fmt::format("{}\n\n**Why it matters.** {}\n\n**Likely cause.** {}\n\n**What to do.** {}",
                  page.what, page.why, page.cause, page.next);
  return {{"id", page.id},
          {"name", page.title},
          {"shortDescription", {{"text", page.title}}},
          {"fullDescription", {{"text", page.what}}},
          {"help", {{"text", help}, {"markdown", markdown}}},
          {"properties", {{"tags", Json::array({family_of(page.id)})}}}};
}

// All of them, so that a rule's number does not depend on what was found.
Json rules(std::span<const Page> pages) {
  Json all = Json::array();
  for (const Page& page : pages) all.push_back(rule_of(page));
  return all;
}

Json location_of(const Judgement& judgement, const Finding& finding) {
  const Side& side = side_of(judgement, finding);
  Json place{{"artifactLocation", {{"uri", artifact_uri(side.path, finding.file)}}}};
  if (finding.bytes && finding.bytes->begin >= 0) {
    place["region"] = {
        {"byteOffset", finding.bytes->begin},
        {"byteLength", std::max<std::int64_t>(finding.bytes->end - finding.bytes->begin, 0)}};
  }
  Json location{{"physicalLocation", place}};
  if (!finding.tensor.empty()) {
    location["logicalLocations"] = Json::array({{{"name", escaped(finding.tensor)},
                                                 {"fullyQualifiedName", escaped(finding.tensor)},
                                                 {"kind", "tensor"}}});
  }
  return location;
}

// What a finding is about, whatever the checkpoint is called and whatever was found there.
std::string subject_of(const Finding& finding) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", finding.id, finding.side, finding.file,
                     finding.tensor, finding.bytes ? finding.bytes->begin : -1,
                     finding.box ? to_string(*finding.box) : "");
}

/// Makes the results of a run, one after the other.
class Results {
 public:
  Results(const Judgement& judgement, std::span<const Page> pages) : judgement_(judgement) {
    for (const Page& page : pages) numbers_.emplace(page.id, numbers_.size());
  }

  Json result_of(const Finding& finding, const Json& suppressions) {
    Json result{{"ruleId", finding.id}};
    const auto number = numbers_.find(finding.id);
    if (number != numbers_.end()) result["ruleIndex"] = number->second;
    result["level"] = level_of(finding.severity);
    std::string text = finding.message;
    if (!finding.next_step.empty() && !text.ends_with(finding.next_step)) {
      text += "\n" + finding.next_step;
    }
    result["message"] = {{"text", message_text(text)}};
    result["locations"] = Json::array({location_of(judgement_, finding)});
    result["partialFingerprints"] = {{"remeshFinding/v1", fingerprint(finding)}};
    result["suppressions"] = suppressions;
    result["properties"] = {{"side", text_or_null(finding.side)},
                            {"box", finding.box ? Json(to_string(*finding.box)) : Json(nullptr)},
                            {"found", text_or_null(finding.found)},
                            {"expected", text_or_null(finding.expected)}};
    return result;
  }

 private:
  // Of several findings about one thing each has its number.
  std::string fingerprint(const Finding& finding) {
    const std::string subject = subject_of(finding);
    const std::string digest =
        to_string(digest_of(std::as_bytes(std::span(subject.data(), subject.size()))));
    const std::string hex = digest.substr(digest.find(':') + 1);
    return fmt::format("{}:{}", hex, ++times_[hex]);
  }

  const Judgement& judgement_;
  std::map<std::string_view, std::size_t> numbers_;
  std::map<std::string, int> times_;
};

Json suppressions_of(const IgnoreRule& rule) {
  std::string why = rule.reason.empty() ? rule.origin : rule.reason;
  if (rule.expires) why += fmt::format(" (until {})", to_text(*rule.expires));
  return Json::array(
      {{{"kind", "external"}, {"status", "accepted"}, {"justification", escaped(why)}}});
}

Json results_of(const Judgement& judgement, std::span<const Page> pages) {
  Results results(judgement, pages);
  Json all = Json::array();
  for (const Finding* finding : gravest_first(judgement)) {
    if (all.size() == most_results) break;
    all.push_back(results.result_of(*finding, Json::array()));
  }
  for (const Ignored::Taken& taken : judgement.ignored.findings) {
    if (all.size() == most_results) break;
    all.push_back(results.result_of(taken.finding,
                                    suppressions_of(judgement.ignored.rules[taken.rule].rule)));
  }
  return all;
}

Json invocation_of(const Judgement& judgement, std::size_t num_results) {
  const std::size_t found = judgement.findings.size() + judgement.ignored.findings.size();
  Json notes = Json::array();
  const auto add = [&notes](std::string_view level, const std::string& text) {
    notes.push_back({{"level", level}, {"message", {{"text", message_text(text)}}}});
  };
  if (found > num_results) add("warning", fmt::format("{} more results", found - num_results));
  for (const Ignored::Rule& applied : judgement.ignored.rules) {
    const std::string trouble = trouble_with(applied);
    if (!trouble.empty()) add(applied.expired ? "warning" : "note", trouble);
  }
  return {{"executionSuccessful", true},
          {"exitCode", judgement.failed ? 1 : 0},
          {"toolExecutionNotifications", notes}};
}

Json invocation_of(const Failure& failure) {
  Json note{{"level", "error"}, {"message", {{"text", message_text(failure.message)}}}};
  if (!failure.id.empty()) note["associatedRule"] = {{"id", failure.id}};
  return {{"executionSuccessful", false},
          {"exitCode", failure.exit},
          {"toolExecutionNotifications", Json::array({std::move(note)})}};
}

// A run without what it came to.
Json run_of(std::string_view verb, std::span<const Page> pages) {
  return {
      {"tool",
       {{"driver",
         {{"name", "remesh"}, {"semanticVersion", remesh_version()}, {"rules", rules(pages)}}}}},
      {"automationDetails", {{"id", fmt::format("remesh/{}/", verb)}}}};
}

Json log_of(Json run) {
  return {{"$schema",
           "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/"
           "sarif-schema-2.1.0.json"},
          {"version", "2.1.0"},
          {"runs", Json::array({std::move(run)})}};
}

bool leads_up(const fs::path& path) { return path.begin() != path.end() && *path.begin() == ".."; }

}  // namespace

std::string artifact_uri(const std::string& checkpoint, const std::string& file) {
  std::error_code unknown;
  const bool is_directory = fs::is_directory(checkpoint, unknown);
  fs::path path = fs::path(checkpoint).lexically_normal();
  // A single file is the checkpoint: names of files stand beside it.
  if (!file.empty()) path = (is_directory ? path : path.parent_path()) / file;
  const fs::path here = fs::current_path(unknown);
  const fs::path relative =
      path.is_absolute() ? path.lexically_relative(here) : path.lexically_normal();
  std::string text = relative.string();
  const bool is_beneath = !text.empty() && !leads_up(relative);
  if (!is_beneath) text = (here / path).lexically_normal().string();
  if (file.empty() && is_directory && !text.ends_with('/')) text += '/';
  return (is_beneath ? "" : "file://") + percent_encoded(text);
}

Json sarif_report(const Judgement& judgement) {
  const std::vector<Page> pages = all_pages();
  Json results = results_of(judgement, pages);
  Json facts = Json::object();
  for (const auto& [name, value] : judgement.facts) facts[name] = value;
  Json run = run_of(judgement.verb, pages);
  run["invocations"] = Json::array({invocation_of(judgement, results.size())});
  run["results"] = std::move(results);
  run["properties"] = {{"judged", judgement.title}, {"facts", std::move(facts)}};
  return log_of(std::move(run));
}

Json sarif_report(const NoVerdict& none) {
  Json run = run_of(none.verb, all_pages());
  run["invocations"] = Json::array({invocation_of(none.failure)});
  run["results"] = Json::array();
  run["properties"] = {{"judged", none.path}, {"facts", Json::object()}};
  return log_of(std::move(run));
}

}  // namespace remesh
