#include "config.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "remesh/core/error.hpp"

namespace remesh::detail {
namespace {

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::corrupt);
    return error.what();
  }
  return "none";
}

TEST(Config, KnowsWhatIsAtTheTop) {
  const Config config = Config::parse(R"({"a": 3, "b": true, "c": "x", "d": null, "e": {"a": 4}})");
  EXPECT_EQ(config.size("a"), 3);
  EXPECT_EQ(config.flag("b"), true);
  EXPECT_EQ(config.text("c"), "x");
  EXPECT_EQ(config.size("d"), std::nullopt) << "null is as good as absent";
  EXPECT_EQ(config.size("f"), std::nullopt);
  EXPECT_TRUE(config.present());
}

TEST(Config, AnEmptyTextSaysNothing) {
  const Config config = Config::parse("");
  EXPECT_FALSE(config.present());
  EXPECT_EQ(config.size("a"), std::nullopt);
}

TEST(Config, RefusesValuesOfAnotherKind) {
  const Config config = Config::parse(
      R"({"f": 3.5, "n": -3, "big": 9223372036854775808, "huge": 1e300, "list": [1], "object": {},
          "text": "é0123456789012345678901234567890123456789", "flag": true})");
  const std::string kind = ", but a positive whole number is expected";
  // clang-format off
  const std::vector<std::pair<const char*, std::string>> table{
      {"f", "3.5"}, {"n", "-3"}, {"big", "9223372036854775808"}, {"huge", "1e+300"}, {"list", "a list"},
      {"object", "an object"}, {"text", R"("\u00e9012345678901234567890123456789012...)"}, {"flag", "true"},
  };
  // clang-format on
  for (const auto& [key, shown] : table) {
    EXPECT_EQ(error_of([&] { config.size(key); }),
              "cannot read config.json: '" + std::string(key) + "' is " + shown + kind);
  }
  EXPECT_EQ(error_of([&] { config.flag("f"); }),
            "cannot read config.json: 'f' is 3.5, but true or false is expected");
  EXPECT_EQ(error_of([&] { config.text("n"); }),
            "cannot read config.json: 'n' is -3, but a text is expected");
  EXPECT_EQ(Config::parse(R"({"a": 9223372036854775807})").size("a"), 9223372036854775807);
}

TEST(Config, RefusesWhatIsNoConfig) {
  const auto parse_error = [](const std::string& text) {
    return error_of([&] { Config::parse(text); });
  };
  EXPECT_EQ(parse_error("{"), "cannot read config.json: it is no valid JSON at byte 2");
  EXPECT_EQ(parse_error("{} x"), "cannot read config.json: it is no valid JSON at byte 4");
  EXPECT_EQ(parse_error(R"({"a": NaN})"), "cannot read config.json: it is no valid JSON at byte 7");
  EXPECT_EQ(parse_error("{\"a\": \"\xff\"}"),
            "cannot read config.json: it is no valid JSON at byte 8");
  EXPECT_EQ(parse_error("[1]"),
            "cannot read config.json: it is of kind array, but an object is expected");
  EXPECT_EQ(parse_error("3"),
            "cannot read config.json: it is of kind number, but an object is expected");
  EXPECT_EQ(parse_error(R"({"a": 1e999})"),
            "cannot read config.json: a number in it is out of range");
  EXPECT_EQ(parse_error(R"({"a": 1, "b": 2, "a": 1})"),
            "cannot read config.json: it says 'a' twice");
  EXPECT_EQ(parse_error(R"({"a": {"b": 1}, "b": 2})"), "none");
}

TEST(Config, RefusesGreatDepth) {
  const auto nested = [](int depth) {
    return "{\"a\": " + std::string(static_cast<std::size_t>(depth - 1), '[') +
           std::string(static_cast<std::size_t>(depth - 1), ']') + "}";
  };
  EXPECT_EQ(error_of([&] { Config::parse(nested(64)); }), "none");
  EXPECT_EQ(error_of([&] { Config::parse(nested(65)); }),
            "cannot read config.json: it is nested deeper than 64");
  EXPECT_EQ(error_of([&] { Config::parse(nested(1000000)); }),
            "cannot read config.json: it is nested deeper than 64");
}

}  // namespace
}  // namespace remesh::detail
