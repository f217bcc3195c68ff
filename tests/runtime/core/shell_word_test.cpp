#include "remesh/core/shell_word.hpp"

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remesh {
namespace {

TEST(ShellWord, APlainPathStaysAsItIs) {
  EXPECT_EQ(shell_word("runs/a_b-1.2:3=4@5%6+7,8"), "runs/a_b-1.2:3=4@5%6+7,8");
  EXPECT_EQ(shell_word("ABCXYZabcxyz0129"), "ABCXYZabcxyz0129");
}

TEST(ShellWord, WhatAShellWouldTakeApartIsQuoted) {
  EXPECT_EQ(shell_word("run 5"), "'run 5'");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a\nb"), "'a\nb'");
  EXPECT_EQ(shell_word("caf\xc3\xa9"), "'caf\xc3\xa9'");
  constexpr std::string_view meant = "$`\"\\*?[](){}<>|&;!#~^\t";
  for (const char c : meant) {
    EXPECT_EQ(shell_word(std::string("a") + c), std::string("'a") + c + "'") << c;
  }
}

TEST(ShellWord, ASingleQuoteEndsTheQuotesAndBeginsThemAgain) {
  EXPECT_EQ(shell_word("it's"), R"('it'\''s')");
  EXPECT_EQ(shell_word("'"), R"(''\''')");
  EXPECT_EQ(shell_word("'a''"), R"(''\''a'\'''\''')");
}

}  // namespace
}  // namespace remesh
