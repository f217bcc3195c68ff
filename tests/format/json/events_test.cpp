#include "remesh/json/events.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "thorough.hpp"

namespace remesh {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string told(const JsonScalar& value) {
  switch (value.kind) {
    case JsonScalar::Kind::null:
      return "null";
    case JsonScalar::Kind::boolean:
      return value.natural != 0 ? "true" : "false";
    case JsonScalar::Kind::natural:
      return fmt::format("natural {}", value.natural);
    case JsonScalar::Kind::negative:
      return fmt::format("negative {}", value.negative);
    case JsonScalar::Kind::real:
      return fmt::format("real {}", value.real);
    case JsonScalar::Kind::text:
      return fmt::format("text {}", value.text);
  }
  return "?";
}

// Writes down what it is told; says no to event number `last`.
class Recorder final : public JsonEvents {
 public:
  explicit Recorder(std::size_t last = SIZE_MAX) : last_(last) {}

  bool begin(bool is_object) override { return add(is_object ? "{" : "["); }
  bool key(std::string_view key) override { return add(fmt::format("key {}", key)); }
  bool scalar(const JsonScalar& value) override { return add(told(value)); }
  bool end() override { return add("end"); }

  std::vector<std::string> events;

 private:
  bool add(std::string event) {
    events.push_back(std::move(event));
    return events.size() < last_;
  }

  std::size_t last_;
};

std::vector<std::string> events_of(std::string_view text) {
  Recorder recorder;
  EXPECT_FALSE(read_json(text, recorder)) << text;
  return recorder.events;
}

TEST(ReadJson, TellsOfEveryKindOfValue) {
  EXPECT_THAT(
      events_of(R"({"a":[1,-2,2.5,1e3,"x\n\"y",true,false,null],"b":{}})"),
      ElementsAre("{", "key a", "[", "natural 1", "negative -2", "real 2.5", "real 1000",
                  "text x\n\"y", "true", "false", "null", "end", "key b", "{", "end", "end"));
  EXPECT_THAT(events_of(" 7 "), ElementsAre("natural 7"));
  EXPECT_THAT(events_of(R"("\u00e9")"), ElementsAre("text \u00e9"));
}

TEST(ReadJson, KeepsAll64Bits) {
  EXPECT_THAT(events_of("[18446744073709551615,9223372036854775808,-9223372036854775808,-0,0]"),
              ElementsAre("[", "natural 18446744073709551615", "natural 9223372036854775808",
                          "negative -9223372036854775808", "negative 0", "natural 0", "end"));
  EXPECT_THAT(events_of("18446744073709551616"), ElementsAre("real 1.8446744073709552e+19"));
}

// Megabytes of little but values, and of names: either way the same is told.
TEST(ReadJson, LongTextsAreNoOthers) {
  for (const std::string_view element : {"0", R"({"model.layers.0.mlp.up_proj.weight":[1,2]})"}) {
    std::string text = "[";
    std::size_t count = 0;
    for (; text.size() < (std::size_t{3} << 20); ++count) {
      if (count > 0) text += ',';
      text += element;
    }
    text += ']';
    Recorder quick;
    Recorder thorough;
    EXPECT_FALSE(read_json(text, quick));
    EXPECT_FALSE(detail::read_thoroughly(text, thorough));
    EXPECT_EQ(quick.events, thorough.events);
    EXPECT_EQ(quick.events.size(), count * (element == "0" ? 1 : 7) + 2);
  }
}

TEST(ReadJson, RepeatedKeysPass) {
  EXPECT_THAT(events_of(R"({"a":1,"a":2})"),
              ElementsAre("{", "key a", "natural 1", "key a", "natural 2", "end"));
}

TEST(ReadJson, StopsWhereAnEventSaysNo) {
  constexpr std::string_view text = R"({"a":[1,{"b":2}],"c":3})";
  const std::vector<std::string> all = events_of(text);
  for (std::size_t last = 1; last < all.size(); ++last) {
    Recorder recorder(last);
    EXPECT_FALSE(read_json(text, recorder));
    EXPECT_EQ(recorder.events.size(), last);
  }
}

TEST(ReadJson, SaysWhereATextBreaksOff) {
  const std::vector<std::string> bad{"",
                                     "{",
                                     "{\"a\"}",
                                     "[1,]",
                                     "{\"a\":1,}",
                                     "[1 2]",
                                     "01",
                                     "1.",
                                     "+1",
                                     "nul",
                                     "\"a",
                                     "[1]]",
                                     "[1] x",
                                     "\"\x01\"",
                                     "\"\\x\"",
                                     "\"\xff\"",
                                     "\"\xc0\x80\"",
                                     "NaN",
                                     "\"\\ud800\"",
                                     "\"\\udc00\"",
                                     "\"\\ud800\\u0041\"",
                                     "\"\xed\xa0\x80\"",
                                     "1e400",
                                     "// c\n1"};
  for (const std::string& text : bad) {
    Recorder recorder;
    const auto fault = read_json(text, recorder);
    ASSERT_TRUE(fault) << text;
    EXPECT_LE(fault->byte, text.size() + 1) << text;
    EXPECT_FALSE(fault->why.empty());
  }
  Recorder recorder;
  EXPECT_TRUE(read_json({}, recorder));
  EXPECT_EQ(read_json("[1,2,x]", recorder)->byte, 6);
}

TEST(ReadJson, DoesNotEndAtANul) {
  Recorder recorder;
  const auto fault = read_json(std::string_view("[1]\0[2", 6), recorder);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->byte, 4);
}

TEST(ReadJson, LooksAtNoByteBehindTheText) {
  std::string text = "[1234";
  text.append(json_padding_bytes, '5');
  for (const std::size_t padding : {std::size_t{0}, json_padding_bytes}) {
    text[5] = padding == 0 ? '5' : ']';
    Recorder recorder;
    EXPECT_TRUE(read_json(std::string_view(text).substr(0, 5), recorder, padding));
    EXPECT_FALSE(read_json("[1234]", recorder, 0));
  }
}

// Texts that are JSON, and texts that are nearly JSON.
class Author {
 public:
  explicit Author(std::uint64_t seed) : engine_(seed) {}

  std::string text() {
    std::string text = value(0);
    if (between(0, 2) > 0) return text;
    static constexpr std::string_view intruders = "{}[]\",:\\u0123eE+-.ntf \n\x80\xc3\xa9\x1f";
    for (int n = between(1, 3); n > 0 && !text.empty(); --n) {
      const auto at = static_cast<std::size_t>(between(0, static_cast<int>(text.size()) - 1));
      const char c =
          intruders[static_cast<std::size_t>(between(0, static_cast<int>(intruders.size()) - 1))];
      switch (between(0, 2)) {
        case 0:
          text[at] = c;
          break;
        case 1:
          text.insert(at, 1, c);
          break;
        default:
          text.erase(at, 1);
      }
    }
    return text;
  }

 private:
  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }

  template <std::size_t n>
  std::string pick(const char* const (&from)[n]) {
    return from[between(0, static_cast<int>(n) - 1)];
  }

  std::string value(int depth) {
    const int kind = between(0, depth < 5 ? 9 : 6);
    if (kind >= 7) return kind % 2 == 0 ? object(depth) : array(depth);
    static constexpr const char* scalars[] = {"0",
                                              "-0",
                                              "17",
                                              "-3",
                                              "18446744073709551615",
                                              "18446744073709551616",
                                              "-9223372036854775808",
                                              "-9223372036854775809",
                                              "0.5",
                                              "-1.25e-3",
                                              "1E2",
                                              "1e-400",
                                              "true",
                                              "false",
                                              "null"};
    return kind < 4 ? pick(scalars) : string();
  }

  std::string string() {
    static constexpr const char* pieces[] = {
        "a",   "weight",  "model.layers.0", "\\n",     "\\\"",     "\\\\",
        "\\/", "\\u00e9", "\\ud83d\\ude00", "\\udc00", "\xc3\xa9", "\xf0\x9f\x98\x80",
        " "};
    std::string text = "\"";
    for (int n = between(0, 3); n > 0; --n) text += pick(pieces);
    return text + '"';
  }

  std::string space() {
    static constexpr const char* spaces[] = {"", "", "", " ", "\n", "\t", "\r\n  "};
    return pick(spaces);
  }

  std::string array(int depth) {
    std::string text = "[" + space();
    for (int n = between(0, 3); n > 0; --n) text += value(depth + 1) + space() + (n > 1 ? "," : "");
    return text + "]";
  }

  std::string object(int depth) {
    std::string text = "{" + space();
    for (int n = between(0, 3); n > 0; --n) {
      text += string() + space() + ":" + space() + value(depth + 1) + (n > 1 ? "," : "");
    }
    return text + "}";
  }

  std::mt19937_64 engine_;
};

// The two libraries must not differ in what they take for JSON, nor in what it says.
TEST(ReadJson, BothLibrariesReadTheSame) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  Author author(seed);
  int good = 0;
  constexpr int texts = 20'000;
  for (int n = 0; n < texts; ++n) {
    const std::string text = author.text();
    Recorder quick;
    Recorder thorough;
    const auto quick_fault = read_json(text, quick);
    const auto thorough_fault = detail::read_thoroughly(text, thorough);
    ASSERT_EQ(quick_fault.has_value(), thorough_fault.has_value()) << text;
    ASSERT_EQ(quick.events, thorough.events) << text;
    if (quick_fault) ASSERT_EQ(quick_fault->byte, thorough_fault->byte) << text;
    if (!quick_fault) ++good;
  }
  EXPECT_GT(good, texts / 3);
  EXPECT_LT(good, texts);
}

}  // namespace
}  // namespace remesh
