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
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

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

  std::vector<Finding> verify_deep() {
    return verify(machine_.judge(), test::opener(path_), Level::deep).findings;
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

TEST_F(ModelChecks, OfLessThanHalfAModelOneWarningSaysHowMuchIsThere) {
  replace("config.json", "\"num_hidden_layers\": 7", "\"num_hidden_layers\": 70");
  lose("model.norm.weight");
  EXPECT_THAT(judge(Level::full), IsEmpty()) << "config.json is asked at deep";
  EXPECT_THAT(judge(),
              ElementsAre("RM302 warn model.layers.7.self_attn.q_proj.weight 633 tensors"));
  const std::vector<Finding> findings = verify_deep();
  EXPECT_EQ(findings[0].found, "65 tensors");
  EXPECT_EQ(findings[0].more_tensors.size(), 633U - 65U - 1U);
  EXPECT_THAT(findings[0].message,
              HasSubstr("65 of 633 tensors of the model that config.json describes are here"));
}

// The border: of 66 tensors 33 may be missing one by one, and 34 are a part.
TEST_F(ModelChecks, HalfAModelIsAModelThatLacksTensors) {
  lose("model.norm.weight");
  int lost = 1;
  for (int layer = 0; lost < 33; ++layer) {
    const std::string name = fmt::format("model.layers.{}.", layer);
    for (const char* part : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                             "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
                             "input_layernorm", "post_attention_layernorm"}) {
      if (lost++ < 33) lose(name + part + ".weight");
    }
  }
  EXPECT_THAT(judge(), AllOf(SizeIs(33), Each(StartsWith("RM302 error"))));
  lose("model.embed_tokens.weight");
  EXPECT_THAT(judge(), ElementsAre(StartsWith("RM302 warn")));
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
  const std::string told = "RM306 error model.norm.weight the parameter's elements";
  for (const Level level : {Level::header, Level::full}) {
    EXPECT_THAT(judge(level), ElementsAre(told));
  }
  EXPECT_THAT(judge(), UnorderedElementsAre(told, StartsWith("RM302 warn")));
}

}  // namespace
}  // namespace remesh
