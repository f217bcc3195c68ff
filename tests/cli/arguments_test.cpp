#include "arguments.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remesh/core/error.hpp"

namespace remesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<std::string> verbs{"inspect", "reshard"};

TEST(SpelledOut, LeavesAVerbAlone) {
  EXPECT_THAT(spelled_out({"reshard", "a", "b"}, verbs), ElementsAre("reshard", "a", "b"));
  EXPECT_THAT(spelled_out({}, verbs), IsEmpty());
  EXPECT_THAT(spelled_out({"--version"}, verbs), ElementsAre("--version"));
}

TEST(SpelledOut, TakesAPathAloneForInspect) {
  EXPECT_THAT(spelled_out({"./nothing-here"}, verbs), ElementsAre("inspect", "./nothing-here"));
  EXPECT_THAT(spelled_out({"/", "--json"}, verbs), ElementsAre("inspect", "/", "--json"));
  EXPECT_THAT(spelled_out({"-v", "/"}, verbs), ElementsAre("inspect", "-v", "/"));
}

TEST(SpelledOut, PutsOptionsBehindTheVerb) {
  EXPECT_THAT(spelled_out({"--json", "reshard", "a"}, verbs),
              ElementsAre("reshard", "--json", "a"));
}

TEST(SpelledOut, TurnsHelpIntoAnOption) {
  EXPECT_THAT(spelled_out({"help", "reshard"}, verbs), ElementsAre("reshard", "--help"));
  EXPECT_THAT(spelled_out({"help"}, verbs), IsEmpty());
}

TEST(SpelledOut, NamesTheVerbThatWasMeant) {
  try {
    spelled_out({"reshrad", "a"}, verbs);
    FAIL() << "took a misspelt verb";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("did you mean `remesh reshard`?"));
  }
}

}  // namespace
}  // namespace remesh
