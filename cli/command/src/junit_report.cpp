#include "junit_report.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "escapes.hpp"
#include "explain_pages.hpp"
#include "finding_text.hpp"
#include "text.hpp"
#include "versions.hpp"

namespace remesh {
namespace {

// Readers keep whole files in memory; what is left out is counted.
constexpr std::size_t most_findings_of_a_case = 50;
constexpr std::size_t most_ignored_of_a_suite = 1000;

/// The findings of one family.
struct Case {
  std::vector<Finding> findings;
  bool failed = false;
};

/// One group of checks.
struct Suite {
  std::map<char, Case> cases;  ///< by the digit of their family
  std::vector<const Ignored::Taken*> ignored;

  std::size_t failures() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(cases, [](const auto& entry) { return entry.second.failed; }));
  }
  std::size_t tests() const { return cases.size() + ignored.size(); }
};

char family_digit(const Finding& finding) { return finding.id.size() > 2 ? finding.id[2] : '0'; }

std::vector<Suite> suites_of(const Judgement& judgement) {
  std::vector<Suite> suites(judgement.groups.size());
  for (std::size_t k = 0; k < suites.size(); ++k) {
    for (const char family : judgement.groups[k].families) suites[k].cases[family];
  }
  for (const Finding& finding : judgement.findings) {
    Case& one = suites[group_of(judgement, finding)].cases[family_digit(finding)];
    one.findings.push_back(finding);
    one.failed = one.failed || finding.severity >= judgement.fail_from;
  }
  for (const Ignored::Taken& taken : judgement.ignored.findings) {
    suites[group_of(judgement, taken.finding)].ignored.push_back(&taken);
  }
  return suites;
}

std::string all_lines(std::span<const Finding> findings) {
  std::string text;
  for (const Finding& finding :
       findings.first(std::min(findings.size(), most_findings_of_a_case))) {
    text += finding_lines(finding) + "\n";
  }
  if (findings.size() > most_findings_of_a_case) {
    text += fmt::format("... and {} more\n", findings.size() - most_findings_of_a_case);
  }
  return text;
}

std::string case_xml(const Judgement& judgement, std::string_view name, const Case& one) {
  std::string head = fmt::format(R"(    <testcase classname="remesh.{}" name="{}" time="0")",
                                 judgement.verb, markup_escaped(name));
  if (one.findings.empty()) return head + "/>\n";
  const std::string text = markup_escaped_lines(all_lines(one.findings));
  if (!one.failed) {
    return fmt::format("{}>\n      <system-out>{}</system-out>\n    </testcase>\n", head, text);
  }
  const auto& first = *std::ranges::max_element(one.findings, {}, &Finding::severity);
  return fmt::format(
      "{}>\n      <failure type=\"{}\" message=\"{}\">{}</failure>\n    </testcase>\n", head,
      markup_escaped(first.id),
      markup_escaped(fmt::format("{}: {}", count_line(one.findings), first.message)), text);
}

std::string ignored_xml(const Judgement& judgement, const Ignored::Taken& taken) {
  const IgnoreRule& rule = judgement.ignored.rules[taken.rule].rule;
  const Finding& finding = taken.finding;
  const std::string place = place_of(finding);
  const std::string why =
      fmt::format("ignored{}{}", rule.expires ? " until " + to_text(*rule.expires) : "",
                  rule.reason.empty() ? "" : ": " + rule.reason);
  return fmt::format(
      "    <testcase classname=\"remesh.{}\" name=\"{}\" time=\"0\">\n      <skipped "
      "message=\"{}\"/>\n    </testcase>\n",
      judgement.verb,
      markup_escaped(fmt::format("ignored {}{}{}", finding.id, place.empty() ? "" : " ", place)),
      markup_escaped(why));
}

using Facts = std::vector<std::pair<std::string, std::string>>;

std::string properties_xml(const Facts& facts) {
  std::string text = "    <properties>\n";
  for (const auto& [name, value] : facts) {
    text += fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", markup_escaped(name),
                        markup_escaped(value));
  }
  return text + "    </properties>\n";
}

Facts facts_of(const Judgement& judgement, const CheckGroup& group) {
  const std::string whole = judgement.failed ? "FAIL" : "ok";
  Facts facts{{"tool", std::string(tool_name())},
              {"verdict", group.verdict.empty() ? whole : group.verdict}};
  facts.insert(facts.end(), judgement.facts.begin(), judgement.facts.end());
  return facts;
}

/// What a suite and the whole count alike.
struct Counts {
  std::size_t tests = 0;
  std::size_t failures = 0;
  std::size_t errors = 0;
  std::size_t skipped = 0;
};

std::string counts_xml(const Counts& counts, double seconds) {
  return fmt::format(R"(tests="{}" failures="{}" errors="{}" skipped="{}" time="{:.3f}")",
                     counts.tests, counts.failures, counts.errors, counts.skipped, seconds);
}

// How the whole begins: its declaration, and its name.
std::string beginning(std::string_view verb, std::string_view title, const Counts& counts,
                      double seconds) {
  return fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\" {}>\n",
                     markup_escaped(fmt::format("remesh {} {}", verb, title)),
                     counts_xml(counts, seconds));
}

std::string suite_xml(const Judgement& judgement, const CheckGroup& group, const Suite& suite,
                      double seconds) {
  std::string text =
      fmt::format("  <testsuite name=\"{}\" {}>\n", markup_escaped(group.name),
                  counts_xml({suite.tests(), suite.failures(), 0, suite.ignored.size()}, seconds));
  text += properties_xml(facts_of(judgement, group));
  for (const auto& [family, one] : suite.cases) {
    text += case_xml(judgement, family_of(fmt::format("RM{}", family)), one);
  }
  for (const Ignored::Taken* taken : suite.ignored) text += ignored_xml(judgement, *taken);
  return text + "  </testsuite>\n";
}

// Tensors that differ are findings; should there ever be none, red stays red.
void fail_somewhere(const Judgement& judgement, std::vector<Suite>& suites) {
  const bool is_red =
      std::ranges::any_of(suites, [](const Suite& suite) { return suite.failures() > 0; });
  if (!judgement.failed || is_red || suites.empty()) return;
  Finding finding;
  finding.id = "RM311";
  finding.message = "the checkpoints are not equal";
  suites.back().cases['3'] = {{finding}, true};
}

// Each of them is counted, but readers need not hear of a hundred thousand by name.
void shorten(std::vector<Suite>& suites) {
  for (Suite& suite : suites) {
    if (suite.ignored.size() > most_ignored_of_a_suite) {
      suite.ignored.resize(most_ignored_of_a_suite);
    }
  }
}

}  // namespace

std::string junit_report(const Judgement& judgement) {
  std::vector<Suite> suites = suites_of(judgement);
  fail_somewhere(judgement, suites);
  shorten(suites);
  Counts all;
  for (const Suite& suite : suites) {
    all.tests += suite.tests();
    all.failures += suite.failures();
    all.skipped += suite.ignored.size();
  }
  std::string text = beginning(judgement.verb, judgement.title, all, judgement.seconds);
  for (std::size_t k = 0; k < suites.size(); ++k) {
    text += suite_xml(judgement, judgement.groups[k], suites[k], k == 0 ? judgement.seconds : 0);
  }
  return text + "</testsuites>\n";
}

std::string junit_report(const NoVerdict& none) {
  const Counts one{1, 0, 1, 0};
  const Failure& failure = none.failure;
  std::string text = beginning(none.verb, none.path, one, none.seconds);
  text += fmt::format("  <testsuite name=\"{}\" {}>\n", markup_escaped(none.path),
                      counts_xml(one, none.seconds));
  text += properties_xml({{"tool", std::string(tool_name())},
                          {"verdict", "none"},
                          {"exit code", std::to_string(failure.exit)}});
  text += fmt::format(
      "    <testcase classname=\"remesh.{}\" name=\"no verdict\" time=\"0\">\n      <error "
      "type=\"{}\" message=\"{}\">{}</error>\n    </testcase>\n",
      none.verb, markup_escaped(failure.id.empty() ? failure.code : failure.id),
      markup_escaped(failure.message), markup_escaped_lines(failure.message));
  return text + "  </testsuite>\n</testsuites>\n";
}

}  // namespace remesh
