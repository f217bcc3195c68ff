#include "remesh/schema/finding.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace remesh {
namespace {

Finding finding(const std::string& id, Severity severity = Severity::error,
                const std::string& message = {}) {
  Finding made;
  made.id = id;
  made.severity = severity;
  made.message = message;
  return made;
}

TEST(Finding, HasTheCodeWithWhichAReaderRefuses) {
  struct Row {
    Errc code;
    std::vector<std::string> ids;
  };
  // clang-format off
  const Row rows[] = {
      {Errc::not_found,     {"RM101", "RM105"}},
      {Errc::unsupported,   {"RM102", "RM310", "RM607"}},
      {Errc::incomplete,    {"RM203", "RM204", "RM301", "RM302"}},
      {Errc::unsafe,        {"RM104", "RM601", "RM602", "RM603", "RM604", "RM606", "RM611", "RM612"}},
      {Errc::out_of_memory, {"RM605", "RM705"}},
      {Errc::busy,          {"RM701"}},
      {Errc::io,            {"RM702", "RM703", "RM706"}},
      {Errc::corrupt,       {"RM103", "RM201", "RM202", "RM207", "RM303", "RM401", ""}},
  };
  // clang-format on
  for (const Row& row : rows) {
    for (const std::string& id : row.ids) {
      EXPECT_EQ(errc_of(finding(id)), row.code) << id << " is " << to_string(errc_of(finding(id)));
    }
  }
}

TEST(StrictFindings, StopAtTheFirstErrorAndKeepTheRest) {
  StrictFindings findings;
  findings.add(finding("RM703", Severity::warn, "slow"));
  findings.add(finding("RM307", Severity::note, "padding"));
  ASSERT_EQ(findings.rest().size(), 2U);
  EXPECT_EQ(findings.rest()[0].message, "slow");
  EXPECT_EQ(findings.rest()[1].id, "RM307");
  try {
    findings.add(finding("RM203", Severity::error, "cannot open x: it lacks rank 3"));
    FAIL() << "swallowed an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::incomplete);
    EXPECT_EQ(error.id(), "RM203");
    EXPECT_STREQ(error.what(), "cannot open x: it lacks rank 3");
  }
  EXPECT_EQ(findings.rest().size(), 2U);
}

TEST(CollectedFindings, KeepAllInTheirOrder) {
  CollectedFindings findings;
  findings.add(finding("RM203"));
  findings.add(finding("RM101", Severity::note));
  ASSERT_EQ(findings.all.size(), 2U);
  EXPECT_EQ(findings.all[0].id, "RM203");
  EXPECT_EQ(findings.all[1].id, "RM101");
}

TEST(Severity, HasAName) {
  EXPECT_EQ(to_string(Severity::note), "note");
  EXPECT_EQ(to_string(Severity::warn), "warn");
  EXPECT_EQ(to_string(Severity::error), "error");
}

}  // namespace
}  // namespace remesh
