#include "ignores.hpp"

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "project_file.hpp"
#include "remesh/core/error.hpp"

namespace remesh {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Day the_last_day = 2027y / 3 / 31;
constexpr Day the_day_after = 2027y / 4 / 1;

Finding found(const std::string& id, const std::string& tensor, const std::string& file = "") {
  Finding finding;
  finding.id = id;
  finding.tensor = tensor;
  finding.file = file;
  return finding;
}

IgnoreRule rule(const std::string& id, const std::string& glob, std::optional<Day> expires = {}) {
  return {id, glob, "because", expires, "here"};
}

bool any(const Finding& /*finding*/) { return true; }

std::vector<std::string> tensors_of(const std::vector<Finding>& findings) {
  std::vector<std::string> names;
  names.reserve(findings.size());
  for (const Finding& finding : findings) names.push_back(finding.tensor);
  return names;
}

TEST(Ignores, TakesWhatARuleNamesByTensorOrFile) {
  std::vector<Finding> findings{found("RM541", "a.b"), found("RM541", "c"), found("RM511", "a.b"),
                                found("RM541", "", "a.file"), found("RM541", "")};
  const std::vector rules{rule("RM541", "a*")};
  const Ignored ignored = take_ignored(findings, rules, the_last_day, any);
  EXPECT_THAT(tensors_of(findings), ElementsAre("c", "a.b", ""));
  ASSERT_EQ(ignored.findings.size(), 2U);
  EXPECT_EQ(ignored.findings[0].finding.tensor, "a.b");
  EXPECT_EQ(ignored.findings[1].finding.file, "a.file");
  EXPECT_EQ(ignored.rules[0].matched, 2);
}

TEST(Ignores, WhatHoldsOfAParameterHoldsOfItsStates) {
  std::vector<Finding> findings{found("RM511", "a.weight@master"), found("RM511", "a.weight"),
                                found("RM511", "b.weight@master"), found("RM511", "@a.weight")};
  take_ignored(findings, std::vector{rule("RM511", "a.weight")}, the_last_day, any);
  EXPECT_THAT(tensors_of(findings), ElementsAre("b.weight@master", "@a.weight"));
}

TEST(Ignores, ARuleHoldsOnItsLastDayAndNotOnTheNext) {
  const std::vector rules{rule("RM541", "", the_last_day)};
  std::vector<Finding> findings{found("RM541", "a")};
  std::vector<Finding> later = findings;
  EXPECT_FALSE(take_ignored(findings, rules, the_last_day, any).rules[0].expired);
  EXPECT_TRUE(findings.empty());

  const Ignored ignored = take_ignored(later, rules, the_day_after, any);
  EXPECT_EQ(later.size(), 1U);
  EXPECT_TRUE(ignored.rules[0].expired);
  EXPECT_EQ(ignored.rules[0].matched, 1);
  EXPECT_EQ(trouble_with(ignored.rules[0]),
            "here: RM541 was ignored until 2027-03-31, which is over; 1 finding counts again");
}

TEST(Ignores, OfTwoRulesTheFirstThatHoldsTakesAFinding) {
  const std::vector rules{rule("RM541", "", the_last_day), rule("RM541", "a"), rule("RM541", "")};
  std::vector<Finding> findings{found("RM541", "a")};
  const Ignored ignored = take_ignored(findings, rules, the_day_after, any);
  ASSERT_EQ(ignored.findings.size(), 1U);
  EXPECT_EQ(ignored.findings[0].rule, 1U);
  EXPECT_EQ(ignored.rules[2].matched, 0);
  EXPECT_THAT(trouble_with(ignored.rules[2]), HasSubstr("nothing was found"));
}

TEST(Ignores, WhatAnotherEntryTakesDoesNotCountAgain) {
  const std::vector rules{rule("RM541", "", the_last_day), rule("RM541", "a")};
  std::vector<Finding> one{found("RM541", "a")};
  std::vector<Finding> three{found("RM541", "a"), found("RM541", "b"), found("RM541", "c")};
  EXPECT_EQ(trouble_with(take_ignored(one, rules, the_day_after, any).rules[0]),
            "here: RM541 was ignored until 2027-03-31, which is over; another entry ignores 1 "
            "finding that it covers, so it can be removed");
  const Ignored ignored = take_ignored(three, rules, the_day_after, any);
  EXPECT_THAT(tensors_of(three), ElementsAre("b", "c"));
  EXPECT_EQ(ignored.rules[0].matched, 2);
  EXPECT_EQ(trouble_with(ignored.rules[0]),
            "here: RM541 was ignored until 2027-03-31, which is over; 2 findings count again, and "
            "another entry ignores 1 finding that it covers");
}

TEST(Ignores, WhatMayNotBeIgnoredStays) {
  const std::vector rules{rule("RM210", "")};
  std::vector<Finding> findings{found("RM210", "a"), found("RM210", "b")};
  const Ignored ignored = take_ignored(
      findings, rules, the_last_day, [](const Finding& finding) { return finding.tensor == "a"; });
  EXPECT_THAT(tensors_of(findings), ElementsAre("b"));
  EXPECT_THAT(tensors_of(ignored.kept), ElementsAre("b"));
}

TEST(Ignores, TextsOfTheCommandLine) {
  EXPECT_EQ(parse_ignore("RM541"), (IgnoreRule{"RM541", "", "", {}, "--ignore RM541"}));
  EXPECT_EQ(parse_ignore("RM541:a:b").glob, "a:b");
  EXPECT_EQ(parse_ignore("rm541:A.b"), (IgnoreRule{"RM541", "A.b", "", {}, "--ignore rm541:A.b"}));
  EXPECT_EQ(parse_ignore("541").id, "RM541");
  for (const char* refused : {"", "RM000", "RM541:", "rm000", "RM101", "rm105", "RM105", "RM202",
                              "RM203", "RM601", "RM703"}) {
    EXPECT_THROW(parse_ignore(refused), Error) << refused;
  }
}

std::string refusal(const std::string& toml) {
  try {
    parse_project_file(toml, "x.toml");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    return error.what();
  }
  return "none";
}

TEST(ProjectFile, SaysEverything) {
  const ProjectFile file = parse_project_file(
      "fail_on = 'warn'\nlevel = 'deep'\n"
      "[[ignore]]\nid = 'RM541'\nglob = 'model.*'\nreason = 'padded'\nexpires = 2027-03-31\n"
      "[[ignore]]\nid = 'RM108'\nreason = 'notes'\nexpires = 2027-04-01\n",
      "x.toml");
  EXPECT_EQ(file.fail_on, "warn");
  EXPECT_EQ(file.level, "deep");
  EXPECT_THAT(file.ignores,
              ElementsAre(IgnoreRule{"RM541", "model.*", "padded", the_last_day, "x.toml line 3"},
                          IgnoreRule{"RM108", "", "notes", the_day_after, "x.toml line 8"}));
}

TEST(ProjectFile, AnEmptyOneSaysNothing) {
  const ProjectFile file = parse_project_file("", "x.toml");
  EXPECT_TRUE(file.fail_on.empty() && file.level.empty() && file.ignores.empty());
}

TEST(ProjectFile, NamesLineAndColumnOfWhatIsWrong) {
  const std::string entry = "[[ignore]]\nid = 'RM541'\n";
  EXPECT_THAT(refusal("fail_on = 'never'\n"), HasSubstr("line 1, column 11: 'fail_on' is 'never'"));
  EXPECT_THAT(refusal("level = 3\n"), HasSubstr("line 1, column 9: 'level' is no text"));
  EXPECT_THAT(refusal("ignore = 3\n"), HasSubstr("'ignore' is no list"));
  EXPECT_THAT(refusal("ignore = [3]\n"), HasSubstr("an entry of 'ignore' is no table"));
  EXPECT_THAT(refusal("[[ignor]]\n"), HasSubstr("did you mean 'ignore'?"));
  EXPECT_THAT(refusal(entry + "expires = 2027-01-01\n"), HasSubstr("has no 'reason'"));
  EXPECT_THAT(refusal(entry + "reason = 'x'\n"), HasSubstr("has no 'expires'"));
  EXPECT_THAT(refusal(entry + "reason = ''\nexpires = 2027-01-01\n"),
              HasSubstr("line 3, column 10: 'reason' is empty"));
  EXPECT_THAT(refusal(entry + "reason = 'x'\nexpires = 2027-01-01T00:00:00\n"),
              HasSubstr("'expires' is no date"));
  EXPECT_THAT(refusal(entry + "reason = 'x'\nexpires = 2027-02-30\n"), HasSubstr("line 4"));
  EXPECT_THAT(refusal("[[ignore]]\nid = 'RM604'\nreason = 'x'\nexpires = 2027-01-01\n"),
              HasSubstr("line 2, column 6: cannot ignore RM604"));
}

}  // namespace
}  // namespace remesh
