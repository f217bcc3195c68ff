#include "remesh/verify/verify.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job.hpp"
#include "remesh/core/error.hpp"
#include "temporary_directory.hpp"

namespace remesh {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const fs::path fixture = fs::path(REMESH_SOURCE_DIR) / "fixtures/llama-gqa";

std::vector<std::string> ids(const Report& report) {
  std::vector<std::string> ids;
  for (const Finding& finding : report.findings) {
    if (finding.severity == Severity::error) ids.push_back(finding.id);
  }
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

void flip(const fs::path& file, std::int64_t offset) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(offset);
  const int byte = stream.get();
  stream.seekp(offset);
  stream.put(static_cast<char>(byte ^ 0x01));
}

class Verify : public ::testing::Test {
 protected:
  Verify() {
    test::run_job(machine_, fixture, ck1_, {.mesh = "tp=2,pp=2"});
    test::run_job(machine_, ck1_, ck2_, {.mesh = "tp=4,dp=2"});
  }

  Report judge(const fs::path& path, Level level = Level::full) {
    return verify(machine_.judge(), test::opener(path), level);
  }
  Report against(const fs::path& left, const fs::path& right, Level level = Level::full) {
    return verify_against(machine_.judge(), test::opener(left), test::opener(right), level);
  }

  // The fixture with another value at [5, 7] of one matrix.
  fs::path changed_fixture() {
    const fs::path changed = directory_ / "changed";
    fs::create_directory(changed);
    for (const auto& entry : fs::directory_iterator(fixture)) {
      fs::copy_file(entry.path(), changed / entry.path().filename());
    }
    const auto reader = test::open_strictly(fixture);
    const auto up = reader->catalog().find("model.layers.3.mlp.up_proj.weight");
    const ExtentMap& map = reader->extents();
    const Extent& extent = map.extents()[map.of(*up)[0]];
    flip(changed / "model.safetensors", extent.offset_bytes + (5 * 64 + 7) * 2);
    return changed;
  }

  test::Machine machine_;
  test::TemporaryDirectory directory_;
  const fs::path ck1_ = directory_ / "ck1";
  const fs::path ck2_ = directory_ / "ck2";
};

TEST_F(Verify, AWholeCheckpointHasNoFindingsAtAnyLevel) {
  for (const Level level : {Level::header, Level::quick, Level::full}) {
    for (const fs::path& path : {fixture, ck1_, ck2_}) {
      const Report report = judge(path, level);
      EXPECT_THAT(report.findings, IsEmpty()) << path << " " << to_string(level);
      EXPECT_EQ(report.tensors, 66);
    }
  }
}

TEST_F(Verify, OnlyFullReadsEveryByte) {
  EXPECT_EQ(judge(ck1_, Level::header).bytes_read, 0);
  EXPECT_FALSE(judge(ck1_, Level::header).recomputed);
  const Report full = judge(ck1_);
  EXPECT_TRUE(full.recomputed);
  EXPECT_GT(full.bytes_read, 596096) << "the payload, and all that guards it";
  EXPECT_EQ(full.bytes_unprotected, 0);
  EXPECT_EQ(judge(fixture).bytes_unprotected, 596096) << "safetensors records no digest";
}

// A copy that was cut, or begun anew, shows at the ends of a file.
TEST_F(Verify, QuickReadsTheFirstAndTheLastBlockOfEveryFile) {
  const ExtentMap map = test::open_strictly(ck1_)->extents();
  const auto all = map.extents();
  for (std::size_t at = 0; at < all.size(); ++at) {
    const bool first = at == 0 || all[at - 1].file != all[at].file;
    const bool last = at + 1 == all.size() || all[at + 1].file != all[at].file;
    if (!first && !last) continue;
    const fs::path file = ck1_ / map.files()[all[at].file].name;
    const std::int64_t byte = all[at].offset_bytes + all[at].length_bytes - 1;
    flip(file, byte);
    EXPECT_THAT(ids(judge(ck1_, Level::quick)), Contains("RM207")) << file << " at " << byte;
    flip(file, byte);
  }
  EXPECT_THAT(judge(ck1_, Level::quick).findings, IsEmpty());
}

TEST_F(Verify, TheSameTensorsInOtherLayoutsAndFormatsAreEqual) {
  for (const Level level : {Level::header, Level::quick, Level::full}) {
    for (const fs::path& left : {fixture, ck1_, ck2_}) {
      for (const fs::path& right : {fixture, ck1_, ck2_}) {
        const Report report = against(left, right, level);
        EXPECT_THAT(report.findings, IsEmpty()) << left << right;
        EXPECT_EQ(report.equal, 66);
        const bool none_recorded = left == fixture && right == fixture;
        EXPECT_EQ(report.recomputed, level == Level::full || none_recorded);
      }
    }
  }
}

TEST_F(Verify, AFlippedSourceIsUnequalAndTheFirstDifferenceIsNamed) {
  const fs::path damaged = changed_fixture();
  const Report report = against(damaged, ck1_);
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_EQ(report.findings[0].id, "RM311");
  EXPECT_EQ(report.findings[0].tensor, "model.layers.3.mlp.up_proj.weight");
  EXPECT_EQ(report.findings[0].box, (Box{{5, 6}, {7, 8}}));
  EXPECT_EQ(report.equal, 65);
}

TEST_F(Verify, AFlipInOneSideIsFoundThereAndByTheComparison) {
  const ExtentMap map = test::open_strictly(ck1_)->extents();
  flip(ck1_ / map.files()[map.extents()[0].file].name, map.extents()[0].offset_bytes);
  EXPECT_THAT(ids(against(ck1_, fixture)), Contains("RM207"));
  EXPECT_THAT(ids(against(fixture, ck1_)), Contains("RM311"));
  EXPECT_THAT(ids(against(ck1_, ck2_, Level::header)), IsEmpty())
      << "recorded digests are compared, and the flip is not in them";
}

TEST_F(Verify, AMissingShardIsNamedWithWhatItHeld) {
  fs::remove(ck1_ / "shard-00003-of-00004.h5");
  const Report report = judge(ck1_);
  EXPECT_THAT(ids(report), Contains("RM203"));
  EXPECT_THAT(ids(report), Contains("RM301"));
  const auto hole = std::ranges::find(report.findings, "RM301", &Finding::id);
  ASSERT_NE(hole, report.findings.end());
  EXPECT_FALSE(hole->tensor.empty());
  EXPECT_TRUE(hole->box);
}

TEST_F(Verify, ATruncatedShardIsNamed) {
  const fs::path shard = ck1_ / "shard-00001-of-00004.h5";
  fs::resize_file(shard, fs::file_size(shard) - 1);
  const Report report = judge(ck1_, Level::header);
  const auto cut = std::ranges::find(report.findings, "RM202", &Finding::id);
  ASSERT_NE(cut, report.findings.end());
  EXPECT_EQ(cut->file, "shard-00001-of-00004.h5");
}

TEST_F(Verify, AShardOfAnotherSaveIsNamed) {
  const fs::path other = directory_ / "other";
  test::run_job(machine_, changed_fixture(), other, {.mesh = "tp=2,pp=2"});
  const std::string shard = "shard-00002-of-00004.h5";
  fs::copy_file(other / shard, ck1_ / shard, fs::copy_options::overwrite_existing);
  EXPECT_THAT(ids(judge(ck1_, Level::header)), Contains("RM109"));
}

TEST_F(Verify, AnUncommittedCheckpointIsBadAndNothingIsNotJudged) {
  fs::remove(ck1_ / "COMMIT");
  EXPECT_THAT(ids(judge(ck1_)), Contains("RM105"));
  EXPECT_THROW(judge(directory_ / "nowhere"), Error);
}

TEST_F(Verify, TensorsThatOnlyOneSideHasAreNamed) {
  const Report report = against(fs::path(REMESH_SOURCE_DIR) /
                                    "fixtures/llama-gqa-sharded/"
                                    "model-00001-of-00011.safetensors",
                                ck1_);
  EXPECT_THAT(ids(report), ::testing::ElementsAre("RM310"));
  EXPECT_THAT(report.findings, SizeIs(65));
  EXPECT_EQ(report.equal, 1);
}

}  // namespace
}  // namespace remesh
