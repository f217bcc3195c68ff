#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job.hpp"
#include "rearrangement.hpp"
#include "temporary_directory.hpp"

namespace remesh {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using test::advises;
using test::Bytes;
using test::counted;
using test::finds;
using test::interleaved;
using test::inverse;
using test::Order;
using test::says;
using test::transposed;
using test::with_columns;
using test::with_rows;

const fs::path fixtures = fs::path(REMESH_SOURCE_DIR) / "fixtures";

// ---- Copies of a trained model, rearranged

class Model {
 public:
  explicit Model(const fs::path& fixture) {
    fs::copy(fixture, path_, fs::copy_options::recursive);
    reader_ = test::open_strictly(path_);
  }

  const fs::path& path() const { return path_; }

  Bytes get(const std::string& name) const {
    const std::size_t tensor = *reader_->catalog().find(name);
    Bytes bytes(static_cast<std::size_t>(num_bytes(reader_->catalog().tensors[tensor])));
    reader_->read(tensor, reader_->catalog().tensors[tensor].extent, bytes, {});
    return bytes;
  }

  void set(const std::string& name, const Bytes& bytes) {
    const ExtentMap& map = reader_->extents();
    const Extent& extent = map.extents()[map.of(*reader_->catalog().find(name))[0]];
    std::fstream file(path_ / map.files()[extent.file].name,
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(extent.offset_bytes);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

  void reorder(const std::string& name, const Order& order) {
    set(name, with_rows(get(name), order));
  }

  // Gives all tensors whose names begin with a prefix the values of those of another prefix.
  void renumber(const std::map<std::string, std::string>& sources) {
    std::vector<std::pair<std::string, Bytes>> values;
    for (const TensorDesc& desc : reader_->catalog().tensors) {
      for (const auto& [to, from] : sources) {
        if (!desc.name.starts_with(to)) continue;
        values.emplace_back(desc.name, get(from + desc.name.substr(to.size())));
      }
    }
    for (const auto& [name, bytes] : values) set(name, bytes);
  }

 private:
  test::TemporaryDirectory directory_;
  fs::path path_ = directory_ / "model";
  std::unique_ptr<Reader> reader_;
};

class Rearranged : public ::testing::Test {
 protected:
  // The rearranged copy against the fixture, both as they are and in every mix of formats and
  // meshes: nothing that is said may depend on that.
  std::vector<Finding> judge(const Model& model, const std::string& fixture = "llama-gqa",
                             Level level = Level::full) {
    test::TemporaryDirectory directory;
    const fs::path original = fixtures / fixture;
    test::run_job(machine_, original, directory / "right", {.mesh = "tp=2"});
    test::run_job(machine_, model.path(), directory / "left", {.mesh = "tp=2,pp=2"});
    auto findings = against(model.path(), directory / "right", level);
    EXPECT_EQ(against(directory / "left", original, level), findings);
    EXPECT_EQ(against(model.path(), original, level), findings);
    test::Machine many(5);
    const Report report = verify_against(many.judge(), test::opener(directory / "left"),
                                         test::opener(directory / "right"), level);
    EXPECT_EQ(report.findings, findings);
    return findings;
  }

  std::vector<Finding> against(const fs::path& left, const fs::path& right, Level level) {
    return verify_against(machine_.judge(), test::opener(left), test::opener(right), level)
        .findings;
  }

  test::Machine machine_;
};

TEST_F(Rearranged, QueriesForTheOtherKindOfRotaryEmbedding) {
  const std::string q = "model.layers.2.self_attn.q_proj.weight";
  const std::string k = "model.layers.2.self_attn.k_proj.weight";
  Model model(fixtures / "llama-gqa");
  model.reorder(q, interleaved(64, 8));
  model.reorder(k, inverse(interleaved(32, 8)));
  const auto findings = judge(model);
  EXPECT_THAT(findings, ElementsAre(finds("RM521", k, "deinterleave(8)"),
                                    finds("RM521", q, "interleave(8)")));
  EXPECT_EQ(
      findings[1].message,
      "'model.layers.2.self_attn.q_proj.weight' (bf16, [0, 64) x [0, 64)): the left side has "
      "the rows of the right one in another order, interleave(8): of each 8 rows, a head, the "
      "left side has the two halves by turns, as rotary embeddings want them that turn "
      "neighbours");
  EXPECT_EQ(findings[1].box, (Box{{0, 64}, {0, 64}}));
  EXPECT_THAT(findings[1].next_step, HasSubstr("the permutation for the rotary embedding"));
}

TEST_F(Rearranged, BiasesToo) {
  const std::string q = "model.layers.1.self_attn.q_proj.bias";
  Model model(fixtures / "moe-state");
  model.reorder(q, interleaved(24, 6));
  const auto findings = judge(model, "moe-state");
  ASSERT_THAT(findings, ElementsAre(finds("RM521", q, "interleave(6)")));
  EXPECT_THAT(findings[0].message, HasSubstr("has the elements of the right one in another order"));
}

TEST_F(Rearranged, ColumnsOfAnOutputProjection) {
  const std::string o = "model.layers.0.self_attn.o_proj.weight";
  Model model(fixtures / "llama-gqa");
  Order heads;
  for (const std::size_t head : {1U, 0U, 3U, 2U, 4U, 5U, 7U, 6U}) {
    for (std::size_t i = 0; i < 8; ++i) heads.push_back(head * 8 + i);
  }
  model.set(o, with_columns(model.get(o), 64, 2, heads));
  EXPECT_THAT(judge(model), ElementsAre(AllOf(finds("RM521", o, "blocks(8)"),
                                              says("RM521",
                                                   "blocks of 8 columns stand in the order "
                                                   "1, 0, 3, 2, 4, 5, 7, 6"),
                                              advises("with the columns in the order of"))));
}

TEST_F(Rearranged, RowsInAnyOrder) {
  const std::string embed = "model.embed_tokens.weight";
  Model model(fixtures / "llama-gqa");
  Order order = counted(515);
  std::swap(order[3], order[500]);
  std::swap(order[4], order[18]);
  model.reorder(embed, order);
  EXPECT_THAT(judge(model),
              ElementsAre(AllOf(finds("RM521", embed, "reorder"),
                                says("RM521",
                                     "4 of 515 rows stand at another place, number 3 of the "
                                     "left side, the first of them, at 500 of"))));
}

TEST_F(Rearranged, ASquareMatrixThatIsTransposed) {
  const std::string o = "model.layers.5.self_attn.o_proj.weight";
  Model model(fixtures / "llama-gqa");
  model.set(o, transposed(model.get(o), 64, 2));
  EXPECT_THAT(judge(model),
              ElementsAre(AllOf(finds("RM523", o, "transpose"), advises("and transpose it"))));
}

TEST_F(Rearranged, LayersThatAreExchanged) {
  Model model(fixtures / "llama-gqa");
  model.renumber({{"model.layers.3.", "model.layers.4."}, {"model.layers.4.", "model.layers.3."}});
  for (const Level level : {Level::header, Level::full}) {
    const auto findings = judge(model, "llama-gqa", level);
    ASSERT_THAT(findings, SizeIs(1));
    EXPECT_EQ(findings[0].id, "RM524");
    EXPECT_EQ(
        findings[0].message,
        "layers 3 and 4 are exchanged in 'model.layers': 18 tensors of the left checkpoint are, "
        "bit for bit, what the right one has under another number");
    EXPECT_THAT(findings[0], advises("number them as the right checkpoint does"));
  }
}

TEST_F(Rearranged, LayersOfAnotherStage) {
  Model model(fixtures / "llama-gqa");
  std::map<std::string, std::string> sources;
  for (int layer = 4; layer < 7; ++layer) {
    sources[fmt::format("model.layers.{}.", layer)] = fmt::format("model.layers.{}.", layer - 1);
  }
  model.renumber(sources);
  EXPECT_THAT(judge(model),
              ElementsAre(says("RM524", "layers 4..6 hold what 3..5 should: shifted by 1 in ")));
}

TEST_F(Rearranged, LayersInACircle) {
  Model model(fixtures / "llama-gqa");
  model.renumber({{"model.layers.1.", "model.layers.5."},
                  {"model.layers.2.", "model.layers.1."},
                  {"model.layers.5.", "model.layers.2."}});
  EXPECT_THAT(
      judge(model),
      ElementsAre(says("RM524", "layers 1, 2, 5 hold what 5, 1, 2 should in 'model.layers'")));
}

TEST_F(Rearranged, ExpertsOfOneLayerAndOfAll) {
  Model model(fixtures / "moe-state");
  const std::string prefix = "model.layers.2.mlp.experts.";
  model.renumber({{prefix + "0.", prefix + "5."}, {prefix + "5.", prefix + "0."}});
  EXPECT_THAT(judge(model, "moe-state"),
              ElementsAre(says("RM524",
                               "experts 0 and 5 are exchanged in 'model.layers.2.mlp.experts': "
                               "24 tensors")));
  std::map<std::string, std::string> all;
  for (int layer = 0; layer < 5; ++layer) {
    const auto expert = [&](int number) {
      return fmt::format("model.layers.{}.mlp.experts.{}.", layer, number);
    };
    for (int number = 0; number < 8; ++number) all[expert(number)] = expert((number + 4) % 8);
  }
  Model wide(fixtures / "moe-state");
  wide.renumber(all);
  EXPECT_THAT(judge(wide, "moe-state"),
              ElementsAre(says("RM524",
                               "experts 0 and 4, 1 and 5, 2 and 6, 3 and 7 are exchanged in "
                               "'model.layers.0.mlp.experts' and 4 more places: 480 tensors")));
}

TEST_F(Rearranged, GateAndUp) {
  Model model(fixtures / "llama-gqa");
  for (const int layer : {1, 2, 6}) {
    const std::string gate = fmt::format("model.layers.{}.mlp.gate_proj.weight", layer);
    const std::string up = fmt::format("model.layers.{}.mlp.up_proj.weight", layer);
    const Bytes was = model.get(gate);
    model.set(gate, model.get(up));
    model.set(up, was);
  }
  EXPECT_THAT(
      judge(model),
      ElementsAre(AllOf(says("RM524",
                             "'model.layers.1.mlp.gate_proj.weight' and "
                             "'model.layers.1.mlp.up_proj.weight' are exchanged, and so "
                             "are 2 more pairs of tensors with such names: bit for bit"),
                        advises("the name that the right checkpoint has for its numbers"))));
}

TEST_F(Rearranged, SeveralAtOnceAndDamageBeside) {
  const std::string q = "model.layers.0.self_attn.q_proj.weight";
  const std::string norm = "model.norm.weight";
  const std::string o = "model.layers.3.self_attn.o_proj.weight";
  Model model(fixtures / "llama-gqa");
  model.renumber({{"model.layers.3.", "model.layers.4."}, {"model.layers.4.", "model.layers.3."}});
  model.reorder(q, interleaved(64, 8));
  Bytes damaged = model.get(norm);
  damaged[5] ^= std::byte{1};
  model.set(norm, damaged);
  damaged = model.get(o);
  damaged[7] ^= std::byte{1};
  model.set(o, damaged);
  EXPECT_THAT(judge(model),
              ElementsAre(finds("RM521", q, "interleave(8)"), says("RM524", "17 tensors"),
                          says("RM311", o), says("RM311", norm)));
}

TEST_F(Rearranged, BytesAreLookedAtFromFullOn) {
  Model model(fixtures / "llama-gqa");
  model.reorder("model.layers.0.self_attn.q_proj.weight", interleaved(64, 8));
  EXPECT_THAT(judge(model, "llama-gqa", Level::header),
              ElementsAre(says("RM311", "first difference")));
}

TEST_F(Rearranged, ScaledAndNegated) {
  const std::string up = "model.layers.0.mlp.up_proj.weight";
  const std::string down = "model.layers.0.mlp.down_proj.weight";
  Model model(fixtures / "llama-gqa");
  Bytes bytes = model.get(up);
  for (std::size_t i = 0; i < bytes.size(); i += 2) {  // bf16: the exponent is bits 7 to 14
    std::uint16_t value = 0;
    std::memcpy(&value, bytes.data() + i, 2);
    if ((value & 0x7F80U) != 0) value = static_cast<std::uint16_t>(value - 3 * 0x80U);
    std::memcpy(bytes.data() + i, &value, 2);
  }
  model.set(up, bytes);
  bytes = model.get(down);
  for (std::size_t i = 1; i < bytes.size(); i += 2) bytes[i] ^= std::byte{0x80};
  model.set(down, bytes);
  EXPECT_THAT(judge(model), ElementsAre(says("RM532", "is -1 times that of the right one, exactly"),
                                        finds("RM532", up, "2^-3")));
}

TEST_F(Rearranged, AnotherTrainingRunIsNoRearrangement) {
  const auto findings =
      against(fixtures / "llama-state", fixtures / "llama-tied-state", Level::full);
  for (const Finding& finding : findings) {
    EXPECT_THAT(finding.id, ::testing::AnyOf("RM302", "RM303", "RM310", "RM311"))
        << finding.message;
  }
}

}  // namespace
}  // namespace remesh
