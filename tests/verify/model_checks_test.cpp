#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job.hpp"
#include "temporary_directory.hpp"

namespace remesh {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The trained model of 7 layers and 66 tensors, whose headers and config.json are rewritten.
class ModelChecks : public ::testing::Test {
 protected:
  ModelChecks() { fs::copy(fs::path(REMESH_SOURCE_DIR) / "fixtures/llama-gqa", path_); }

  static std::string text_of(const fs::path& file) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
  }

  void replace(const std::string& file, const std::string& old, const std::string& with) {
    std::string text = text_of(path_ / file);
    const auto at = text.find(old);
    ASSERT_NE(at, std::string::npos) << old;
    text.replace(at, old.size(), with);
    std::ofstream(path_ / file, std::ios::binary) << text;
  }

  // Under a name of the same length that no map knows, and of no parent that one knows.
  void lose(const std::string& name) {
    std::string other = name;
    std::ranges::replace(other, '.', '_');
    replace("model.safetensors", "\"" + name + "\"", "\"" + other + "\"");
  }

  std::vector<std::string> judge(Level level = Level::deep) {
    std::vector<std::string> all;
    for (const Finding& finding : verify(machine_.judge(), test::opener(path_), level).findings) {
      all.push_back(fmt::format("{} {} {} {}", finding.id, to_string(finding.severity),
                                finding.tensor, finding.expected));
    }
    return all;
  }

  test::Machine machine_;
  test::TemporaryDirectory directory_;
  fs::path path_ = directory_ / "model";
};

TEST_F(ModelChecks, AWholeModelLacksNothing) { EXPECT_THAT(judge(), IsEmpty()); }

TEST_F(ModelChecks, ALostTensorIsNamed) {
  lose("model.layers.4.mlp.up_proj.weight");
  lose("model.norm.weight");
  EXPECT_THAT(judge(Level::full), IsEmpty()) << "config.json is asked at deep";
  EXPECT_THAT(judge(),
              ElementsAre("RM302 error model.layers.4.mlp.up_proj.weight [0, 108) x [0, 64)",
                          "RM302 error model.norm.weight [0, 64)"));
}

TEST_F(ModelChecks, FusedPartsAreNotMissing) {
  replace("model.safetensors", "self_attn.q_proj.weight", "self_attn.q_pack.weight");
  EXPECT_THAT(judge(), IsEmpty());
}

TEST_F(ModelChecks, LayersBehindSomeLayerAreThoseOfOtherStages) {
  replace("config.json", "\"num_hidden_layers\": 7", "\"num_hidden_layers\": 9");
  EXPECT_THAT(judge(), ElementsAre("RM305 error model.layers.7.self_attn.q_proj.weight 9 layers"));
}

TEST_F(ModelChecks, APartOfAModelIsSomebodysChoice) {
  replace("config.json", "\"num_hidden_layers\": 7", "\"num_hidden_layers\": 70");
  lose("model.norm.weight");
  EXPECT_THAT(judge(), IsEmpty());
}

TEST_F(ModelChecks, OtherShapesAreNamed) {
  replace("config.json", "\"intermediate_size\": 108", "\"intermediate_size\": 110");
  EXPECT_THAT(judge(), SizeIs(21)) << "gate, up and down of 7 layers";
  EXPECT_THAT(judge()[0], "RM303 error model.layers.0.mlp.down_proj.weight [0, 64) x [0, 110)");
}

TEST_F(ModelChecks, AWeightWithoutElementsIsAPlaceholderAtEveryLevel) {
  const std::string header =
      R"({"model.norm.weight":{"dtype":"BF16","shape":[0],"data_offsets":[0,0]},)"
      R"("steps":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}} )";
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  std::ofstream(path_ / "model.safetensors", std::ios::binary) << length << header;
  for (const Level level : {Level::header, Level::full, Level::deep}) {
    EXPECT_THAT(judge(level),
                ElementsAre("RM306 error model.norm.weight the parameter's elements"));
  }
}

}  // namespace
}  // namespace remesh
