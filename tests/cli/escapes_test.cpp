#include "escapes.hpp"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "sarif_report.hpp"

namespace remesh {
namespace {

TEST(Escapes, MarkupHasNoCharacterOfMarkupLeft) {
  EXPECT_EQ(markup_escaped("\"><img onerror='x' a=&b>"),
            "&quot;&gt;&lt;img onerror=&#39;x&#39; a=&amp;b&gt;");
  EXPECT_EQ(markup_escaped("</script>"), "&lt;/script&gt;");
}

TEST(Escapes, WhatXmlForbidsIsMadeVisible) {
  EXPECT_EQ(markup_escaped(std::string_view("a\0b\x1b\x7f\n", 6)), "a\\x00b\\x1b\\x7f\\x0a");
  EXPECT_EQ(markup_escaped("\xef\xbf\xbe \xef\xbf\xbf \xff \xed\xa0\x80"),
            "\\xef\\xbf\\xbe \\xef\\xbf\\xbf \\xff \\xed\\xa0\\x80");
  EXPECT_EQ(markup_escaped("\xe2\x80\xae"), "\\xe2\\x80\\xae");  // right to left
  EXPECT_EQ(markup_escaped("\xc3\xa9"), "\xc3\xa9");
  EXPECT_EQ(markup_escaped_lines("a\n\rb"), "a\n\\x0db");
}

TEST(Escapes, NamesMayBreakButNotTags) {
  EXPECT_EQ(breakable("<p class=\"a.b_c\">x.y_z/&lt;</p>"),
            "<p class=\"a.b_c\">x.<wbr>y_<wbr>z/<wbr>&lt;</p>");
}

TEST(Escapes, MarkdownIsShownAsItIs) {
  EXPECT_EQ(markdown_escaped("a|b`c`<d>[e](f)"), "a&#124;b&#96;c&#96;&#60;d&#62;&#91;e&#93;(f)");
  EXPECT_EQ(markdown_escaped("@me https://x #1\n"), "&#64;me https&#58;//x &#35;1&#92;x0a");
}

TEST(Escapes, UrisHaveNoByteThatMeansSomething) {
  EXPECT_EQ(percent_encoded("a b/c:d?e#f%g\xc3\xa9"), "a%20b/c%3Ad%3Fe%23f%25g%C3%A9");
  EXPECT_EQ(percent_encoded("AZaz09-._~"), "AZaz09-._~");
}

TEST(Escapes, WorkflowCommandsAreOneLine) {
  EXPECT_EQ(command_message("50%\n::set-output"), "50%25%0A\\x3a:set-output");
  EXPECT_EQ(command_property("a:b,c%"), "a%3Ab%2Cc%25");
  EXPECT_EQ(command_message("a\rb"), "a\\x0db");
}

TEST(Escapes, PlacesAreRelativeToTheWorkingDirectory) {
  EXPECT_EQ(artifact_uri("some/./ckpt", ""), "some/ckpt");
  EXPECT_EQ(artifact_uri("a b.safetensors", "a b.safetensors"), "a%20b.safetensors");
  EXPECT_EQ(artifact_uri("/nowhere/x", ""), "file:///nowhere/x");
  EXPECT_EQ(artifact_uri("/nowhere/x.safetensors", "x.safetensors"),
            "file:///nowhere/x.safetensors");
  EXPECT_TRUE(artifact_uri("../x", "").starts_with("file:///"));
}

}  // namespace
}  // namespace remesh
