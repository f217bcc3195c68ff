#include "text.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remesh {
namespace {

using testing::ElementsAre;

TEST(Escaped, LeavesPlainTextAlone) {
  EXPECT_EQ(escaped("model.layers.0.mlp.up_proj.weight"), "model.layers.0.mlp.up_proj.weight");
  EXPECT_EQ(escaped("Größe 模型 😀"), "Größe 模型 😀");
}

TEST(Escaped, ShowsWhatATerminalWouldActOn) {
  EXPECT_EQ(escaped("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(escaped("a\nb\tc\x7f"), "a\\x0ab\\x09c\\x7f");
  EXPECT_EQ(escaped("\xc2\x9b"
                    "31m"),
            "\\xc2\\x9b31m")
      << "C1: CSI in UTF-8";
}

TEST(Escaped, ShowsWhatHidesOrTurnsText) {
  EXPECT_EQ(escaped("a\xe2\x80\xae"
                    "b"),
            "a\\xe2\\x80\\xaeb")
      << "right-to-left override";
  EXPECT_EQ(escaped("a\xe2\x80\x8b"
                    "b"),
            "a\\xe2\\x80\\x8bb")
      << "zero-width space";
}

TEST(Escaped, ShowsBytesThatAreNoUtf8) {
  EXPECT_EQ(escaped("\xff"), "\\xff");
  EXPECT_EQ(escaped("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(escaped("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(escaped("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond the last character";
  EXPECT_EQ(escaped("ab\xe2\x82"), "ab\\xe2\\x82") << "cut off";
}

TEST(Escaped, IsNoCommandToARunner) {
  EXPECT_EQ(escaped("a ##[add-mask]e"), "a \\x23#[add-mask]e");
  EXPECT_EQ(escaped("::stop-commands::x"), "\\x3a:stop-commands::x");
  EXPECT_EQ(escaped("a::b ##"), "a::b ##");
  EXPECT_EQ(escaped_lines("a\n::b"), "a\n\\x3a:b");
}

TEST(EscapedLines, KeepsLineFeedsOnly) { EXPECT_EQ(escaped_lines("a\nb\r"), "a\nb\\x0d"); }

TEST(Counted, SaysOneAndMany) {
  EXPECT_EQ(counted(1, "tensor"), "1 tensor");
  EXPECT_EQ(counted(0, "tensor"), "0 tensors");
  EXPECT_EQ(counted(65, "tensor"), "65 tensors");
}

TEST(FormatSeconds, GrowsCoarser) {
  EXPECT_EQ(format_seconds(0.123), "0.12 s");
  EXPECT_EQ(format_seconds(31.64), "31.6 s");
  EXPECT_EQ(format_seconds(211.6), "3 min 32 s");
}

TEST(FormatShape, OfAScalarIsEmpty) {
  EXPECT_EQ(format_shape(Box{}), "[]");
  EXPECT_EQ(format_shape(Box{{0, 515}, {0, 64}}), "[515, 64]");
}

TEST(Nearest, FindsWhatWasMeant) {
  const std::vector<std::string> options{"--mesh", "--memory", "--json"};
  EXPECT_EQ(nearest("--mehs", options), "--mesh");
  EXPECT_EQ(nearest("--memry", options), "--memory");
  EXPECT_EQ(nearest("--quintessence", options), "");
}

TEST(Nearest, DoesNotTakeAWordForOneOfWhichNothingIsLeft) { EXPECT_EQ(nearest("x", {"hf"}), ""); }

TEST(Table, AlignsColumnsAndLeavesNoTrailingSpace) {
  Table table;
  table.add({"name", "dtype"});
  table.add({"model.norm.weight", "bf16"});
  table.add({"b", ""});
  EXPECT_THAT(table.lines("> "),
              ElementsAre("> name               dtype", "> model.norm.weight  bf16", "> b"));
}

}  // namespace
}  // namespace remesh
