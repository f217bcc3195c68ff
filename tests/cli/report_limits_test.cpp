#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "junit_report.hpp"
#include "sarif_report.hpp"

/// @file
/// What reports leave out of very many findings: it is counted, and no failure is lost.

namespace remesh {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Finding finding(Severity severity, const std::string& message) {
  Finding made;
  made.id = "RM311";
  made.severity = severity;
  made.message = message;
  return made;
}

Judgement judgement() {
  Judgement made;
  made.verb = "verify";
  made.title = "ckpt";
  made.sides.push_back({.path = "ckpt", .opened = true});
  made.groups.push_back({"ckpt", "", "3"});
  return made;
}

void ignore(Judgement& made, std::size_t count) {
  made.ignored.rules.push_back({{.id = "RM311", .reason = "why", .origin = "here"}, false, 1});
  for (std::size_t k = 0; k < count; ++k) {
    made.ignored.findings.push_back({finding(Severity::error, "other"), 0});
  }
}

std::size_t times(std::string_view text, std::string_view word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

TEST(JunitReport, SpellsOutFiftyFindingsOfACase) {
  Judgement made = judgement();
  for (int k = 0; k < 50; ++k) made.findings.push_back(finding(Severity::warn, "some words"));
  const std::string whole = junit_report(made);
  EXPECT_EQ(times(whole, "some words"), 50U);
  EXPECT_THAT(whole, Not(HasSubstr("more")));
  made.findings.push_back(
      finding(Severity::error, "some words"));  // the last, and the only failure
  const std::string cut = junit_report(made);
  EXPECT_EQ(times(cut, "some words"), 51U) << "50 lines, and the first error in the head";
  EXPECT_THAT(cut, HasSubstr("... and 1 more\n"));
  EXPECT_THAT(cut, HasSubstr("1 error, 50 warnings: some words"));
  EXPECT_THAT(cut, HasSubstr("<testsuites name=\"remesh verify ckpt\" tests=\"1\" failures=\"1\""));
}

TEST(JunitReport, HasAThousandIgnoredCasesOfASuite) {
  Judgement made = judgement();
  ignore(made, 1000);
  EXPECT_EQ(times(junit_report(made), "<skipped "), 1000U);
  made.ignored.findings.push_back(made.ignored.findings.front());
  const std::string cut = junit_report(made);
  EXPECT_EQ(times(cut, "<skipped "), 1000U);
  EXPECT_THAT(cut, HasSubstr("tests=\"1001\" failures=\"0\" errors=\"0\" skipped=\"1000\""));
}

TEST(SarifReport, HasAsManyResultsAsGithubTakes) {
  Judgement made = judgement();
  for (int k = 0; k < 24'990; ++k) made.findings.push_back(finding(Severity::note, "of many"));
  ignore(made, 10);
  const Json whole = sarif_report(made)["runs"][0];
  EXPECT_EQ(whole["results"].size(), 25'000U);
  EXPECT_TRUE(whole["invocations"][0]["toolExecutionNotifications"].empty());
  made.findings.push_back(finding(Severity::error, "the gravest"));
  made.findings.push_back(finding(Severity::note, "of many"));
  const Json cut = sarif_report(made)["runs"][0];
  EXPECT_EQ(cut["results"].size(), 25'000U);
  EXPECT_EQ(cut["results"][0]["message"]["text"], "the gravest");
  EXPECT_EQ(cut["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"],
            "2 more results");
}

}  // namespace
}  // namespace remesh
