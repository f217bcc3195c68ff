#include "remesh/execute/reshard.hpp"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job.hpp"
#include "remesh/core/error.hpp"
#include "remesh/schema/pieces.hpp"
#include "temporary_directory.hpp"

namespace remesh {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const fs::path fixture = fs::path(REMESH_SOURCE_DIR) / "fixtures/llama-gqa";

class Resharded : public ::testing::Test {
 protected:
  Resharded() {
    test::run_job(machine_, fixture, directory_ / "ck", {.mesh = "tp=2,pp=2"});
    source_ = test::open_strictly(directory_ / "ck")->catalog();
  }

  std::vector<Rank> holders(const Catalog& catalog, const std::string& name) {
    const auto tensor = catalog.find(name);
    return Pieces(catalog.layout, catalog.tensors).of(*tensor)[0].holders;
  }

  test::TemporaryDirectory directory_;
  test::Machine machine_;
  Catalog source_;
};

TEST_F(Resharded, KeepsThePlacementsAndDealsTheLayersAnew) {
  const Catalog wanted = resharded(source_, parse_mesh("pp=3"), nullptr, {});
  EXPECT_EQ(wanted.layout.stages(), (Stages{{3, 2, 2}}));
  EXPECT_EQ(wanted.tensors, source_.tensors);
  EXPECT_EQ(holders(wanted, "model.embed_tokens.weight"), (std::vector<Rank>{0}));
  EXPECT_EQ(holders(wanted, "model.layers.3.input_layernorm.weight"), (std::vector<Rank>{1}));
  EXPECT_EQ(holders(wanted, "lm_head.weight"), (std::vector<Rank>{2}));
}

TEST_F(Resharded, SharesKvGroupsWhereTpExceedsThem) {
  const Catalog wanted = resharded(source_, parse_mesh("tp=8"), nullptr, {});
  EXPECT_EQ(holders(wanted, "model.layers.0.self_attn.k_proj.weight"), (std::vector<Rank>{0, 1}));
  EXPECT_EQ(holders(wanted, "model.layers.0.self_attn.q_proj.weight"), (std::vector<Rank>{0}));
}

TEST_F(Resharded, RefusesAMeshThatCutsAHeadOrEmptiesAStage) {
  const Catalog& source = source_;
  const auto boxes_on = [&source](const char* mesh) {
    const Catalog wanted = resharded(source, parse_mesh(mesh), nullptr, {});
    for (std::size_t i = 0; i < wanted.tensors.size(); ++i) {
      Pieces(wanted.layout, wanted.tensors).of(i);
    }
  };
  try {
    boxes_on("tp=3");
    FAIL() << "cut 8 heads in 3";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("the nearest legal values are tp=2 and tp=4"));
  }
  try {
    boxes_on("pp=8");
    FAIL() << "dealt 7 layers to 8 stages";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("7 layers to 8 pipeline stages"));
  }
}

TEST_F(Resharded, TheSameMeshGivesTheSameFilesAgain) {
  test::run_job(machine_, directory_ / "ck", directory_ / "again", {.mesh = "tp=2,pp=2"});
  const Catalog again = test::open_strictly(directory_ / "again")->catalog();
  EXPECT_EQ(again.save_id, source_.save_id);
  EXPECT_EQ(again.layout, source_.layout);
}

}  // namespace
}  // namespace remesh
