#include "safetensors/json.hpp"

#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remesh::safetensors {
namespace {

class Listener final : public JsonHandler {
 public:
  bool open(std::size_t, bool) override { return true; }
  bool close(std::size_t) override { return true; }
  bool key(std::size_t, std::string_view) override {
    ++keys;
    return true;
  }
  bool scalar(std::size_t, const JsonScalar&) override { return true; }

  int keys = 0;
};

// {"k0":0,"k1":0,...}, with the key at `second` the same as the one at `first`.
std::string object_of(int keys, int first, int second) {
  std::string text = "{";
  for (int key = 0; key < keys; ++key) {
    text += fmt::format("{}\"k{}\":0", key > 0 ? "," : "", key == second ? first : key);
  }
  return text + "}";
}

TEST(ParseJson, FindsEveryRepeatedKeyWhereverItStands) {
  for (const int keys : {2, 7, 8, 9, 10, 17, 40}) {
    for (int second = 1; second < keys; ++second) {
      for (int first = 0; first < second; ++first) {
        Listener listener;
        ASSERT_FALSE(parse_json(object_of(keys, first, second), listener));
        ASSERT_EQ(listener.objection->id, "RM608");
        ASSERT_THAT(listener.objection->message, ::testing::HasSubstr(fmt::format("'k{}'", first)));
        ASSERT_EQ(listener.keys, second);
      }
    }
    Listener listener;
    EXPECT_TRUE(parse_json(object_of(keys, 0, keys), listener)) << keys;
    EXPECT_EQ(listener.keys, keys);
  }
}

// The memory of an object that ended serves the next one.
TEST(ParseJson, KeysOfAnotherObjectAreOthers) {
  const std::string many = object_of(20, 0, 20);
  Listener listener;
  EXPECT_TRUE(parse_json(fmt::format(R"({{"a":{0},"b":{0},"c":[{0},{0}]}})", many), listener));
  EXPECT_EQ(listener.keys, 83);
  EXPECT_FALSE(parse_json(fmt::format(R"([{},{}])", many, object_of(20, 3, 19)), listener));
}

TEST(ParseJson, KeepsItsLimits) {
  Listener deep;
  EXPECT_TRUE(parse_json(std::string(64, '[') + std::string(64, ']'), deep));
  EXPECT_FALSE(parse_json(std::string(65, '[') + std::string(65, ']'), deep));
  EXPECT_EQ(deep.objection->id, "RM605");
  Listener wide;
  EXPECT_TRUE(parse_json(fmt::format(R"({{"{}":0}})", std::string(max_key_bytes, 'k')), wide));
  EXPECT_FALSE(parse_json(fmt::format(R"({{"{}":0}})", std::string(max_key_bytes + 1, 'k')), wide));
  EXPECT_EQ(wide.objection->id, "RM605");
}

}  // namespace
}  // namespace remesh::safetensors
