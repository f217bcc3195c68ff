#include "safetensors/index.hpp"

#include <filesystem>
#include <iostream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hf_files.hpp"

namespace remesh::safetensors {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::StrEq;

WeightIndex parsed(const std::string& text) {
  StrictFindings findings;
  return parse_index(text, index_name, findings).value();
}

TEST(ParseIndex, KeepsTheOrderOfTheMapAndListsEachFileOnce) {
  const WeightIndex index = parsed(R"({"weight_map":{"b":"2.safetensors","a":"1.safetensors",)"
                                   R"("c":"2.safetensors"},"metadata":{"total_size":7}})");
  EXPECT_THAT(index.weight_map, ElementsAre(Pair("b", "2.safetensors"), Pair("a", "1.safetensors"),
                                            Pair("c", "2.safetensors")));
  EXPECT_THAT(index.files, ElementsAre("1.safetensors", "2.safetensors"));
  EXPECT_EQ(index.total_size, 7);
}

TEST(ParseIndex, NeedsNoMetadata) {
  EXPECT_EQ(parsed(R"({"weight_map":{"a":"f"}})").total_size, std::nullopt);
  EXPECT_EQ(parsed(R"({"metadata":null,"weight_map":{"a":"f"}})").total_size, std::nullopt);
  EXPECT_EQ(parsed(R"({"metadata":{},"weight_map":{"a":"f"}})").total_size, std::nullopt);
}

TEST(ParseIndex, ReadsASizeThatWasComputedInFloatingPoint) {
  const auto size = [](const std::string& number) {
    return parsed(R"({"metadata":{"total_size":)" + number + R"(},"weight_map":{"a":"f"}})")
        .total_size;
  };
  EXPECT_EQ(size("8060522496.0"), 8060522496);
  EXPECT_EQ(size("9223372036854775807"), 9223372036854775807);
  EXPECT_EQ(size("9223372036854775808"), -1);
  EXPECT_EQ(size("1e300"), -1);
  EXPECT_EQ(size("0.5"), -1);
  EXPECT_EQ(size("-1"), -1);
}

TEST(ParseIndex, LeavesOtherKeysAlone) {
  const WeightIndex index =
      parsed(R"({"version":1,"metadata":{"a":{"total_size":3},"b":[1,{"total_size":4}],"c":null},)"
             R"("more":{"weight_map":{"x":"y"}},"list":[{"k":"v"}],"weight_map":{"a":"f"}})");
  EXPECT_THAT(index.weight_map, ElementsAre(Pair("a", "f")));
  EXPECT_EQ(index.total_size, std::nullopt);
}

// Written by Python: json.dumps(index, indent=2, sort_keys=True) + "\n", as transformers does.
TEST(IndexText, IsWhatTransformersWrites) {
  const std::string source =
      "{\"weight_map\": {\"x\": \"y\"}, \"metadata\": {\"total_size\": 1, \"total_parameters\": 12,"
      " \"note\": {\"b\": [], \"a\": [1, \"\u00e9\"], \"c\": {}}}}";
  EXPECT_THAT(index_text({{"b", "2.safetensors"}, {"a\u00e9\x7f\"\U0001f600", "1.safetensors"}}, 24,
                         source),
              StrEq("{\n"
                    "  \"metadata\": {\n"
                    "    \"note\": {\n"
                    "      \"a\": [\n"
                    "        1,\n"
                    "        \"\\u00e9\"\n"
                    "      ],\n"
                    "      \"b\": [],\n"
                    "      \"c\": {}\n"
                    "    },\n"
                    "    \"total_parameters\": 12,\n"
                    "    \"total_size\": 24\n"
                    "  },\n"
                    "  \"weight_map\": {\n"
                    "    \"a\\u00e9\\u007f\\\"\\ud83d\\ude00\": \"1.safetensors\",\n"
                    "    \"b\": \"2.safetensors\"\n"
                    "  }\n"
                    "}\n"));
}

TEST(IndexText, WithoutASourceHasTheSizeAlone) {
  EXPECT_THAT(index_text({{"a", "f"}}, 0, ""),
              StrEq("{\n  \"metadata\": {\n    \"total_size\": 0\n  },\n"
                    "  \"weight_map\": {\n    \"a\": \"f\"\n  }\n}\n"));
}

TEST(IndexText, RebuildsTheIndexThatTransformersWrote) {
  const std::string text = test::content_of(std::filesystem::path(REMESH_SOURCE_DIR) /
                                            "fixtures/llama-gqa-sharded" / index_name);
  const WeightIndex index = parsed(text);
  EXPECT_THAT(index_text(index.weight_map, index.total_size.value(), text), StrEq(text));
}

TEST(IndexText, RebuildsThePublishedIndexesThatTransformersWrote) {
  const auto folder = std::filesystem::path(REMESH_SOURCE_DIR) / "../shared/data/real/indexes";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "did not run: there is no " << folder;
  std::size_t same = 0;
  std::vector<std::string> others;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!std::filesystem::exists(entry.path() / index_name)) continue;
    const std::string text = test::content_of(entry.path() / index_name);
    if (text.size() > 1'000'000) continue;  // one of 2 MB takes its time under sanitizers
    const WeightIndex index = parsed(text);
    if (index_text(index.weight_map, index.total_size.value(), text) == text) {
      ++same;
    } else {
      others.push_back(entry.path().filename().string());
    }
  }
  std::cout << same << " indexes rebuilt byte for byte\n";
  EXPECT_GE(same, 6);
  EXPECT_THAT(others, ElementsAre("phi3-3b-slerp")) << "which stands in one line";
}

}  // namespace
}  // namespace remesh::safetensors
