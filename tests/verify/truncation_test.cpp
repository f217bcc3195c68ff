// Files that end early, lie under each other's names, or are not what they were: none opens without
// a word, and each is called by its own name.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../format/store/native_fixture.hpp"
#include "chunked_content.hpp"
#include "job.hpp"
#include "remesh/core/error.hpp"
#include "seeds.hpp"
#include "temporary_directory.hpp"

namespace remesh {
namespace {

namespace fs = std::filesystem;
using test::content_of;
using test::ids_of;
using test::refusal;
using test::set_content;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string shard_0 = "shard-00000-of-00004.h5";
const std::string shard_1 = "shard-00001-of-00004.h5";

class Cut : public ::testing::TestWithParam<std::optional<int>> {
 protected:
  Cut() { write(checkpoint_, "run"); }

  void write(const fs::path& path, const std::string& run) const {
    Catalog catalog = test::small_catalog({{{"rows", DType::f32, Box{{0, 64}, {0, 32}}}, 1},
                                           {{"smooth.rows", DType::bf16, Box{{0, 64}, {0, 72}}}, 1},
                                           {{"bias", DType::bf16, Box{{0, 3}}}, 0}});
    catalog.side = {test::side_file("config.json")};
    catalog.run_id = run;
    const auto writer = create_native(posix_file_system(), path, catalog, test::side_bytes,
                                      {.compress_level = GetParam(), .job_id = "test"});
    test::write_and_seal(*writer);
    writer->publish();
  }

  std::vector<Finding> judged(Level level = Level::full) {
    return verify(machine_.judge(), test::opener(checkpoint_), level).findings;
  }

  // Cuts a file to every `stride`-th length, and expects each to be refused as `id` says.
  void expect_refused_at_each_length(const std::string& name, const std::string& id,
                                     std::uintmax_t stride) {
    const std::string whole = content_of(checkpoint_ / name);
    for (std::uintmax_t length = whole.size(); length-- > 0;) {
      if (length % stride != 0 && length + 1 != whole.size()) continue;
      fs::resize_file(checkpoint_ / name, length);
      ASSERT_EQ(refusal(checkpoint_), id) << name << " cut to " << length;
      const auto found = ids_of(checkpoint_);
      ASSERT_FALSE(found.empty());
      ASSERT_EQ(found.front(), id) << name << " cut to " << length;
    }
    set_content(checkpoint_ / name, whole);
    ASSERT_EQ(refusal(checkpoint_), "") << "it was put back";
  }

  void expect_told(const std::string& id, const std::vector<std::string>& files) {
    EXPECT_EQ(refusal(checkpoint_), id);
    std::vector<std::string> named;
    for (const Finding& finding : judged()) {
      if (finding.id == id) named.push_back(finding.file);
    }
    EXPECT_EQ(named, files);
  }

  test::Machine machine_;
  test::TemporaryDirectory directory_;
  const fs::path checkpoint_ = directory_ / "ckpt";
};

TEST_P(Cut, AShardIsRefusedAtEveryLength) {
  const bool all = test::num_seeds(1) > 1;
  expect_refused_at_each_length(shard_0, "RM202", all || GetParam() ? 1 : 7);
  expect_refused_at_each_length(shard_1, "RM202", all ? 1 : 53);
}

TEST_P(Cut, TheManifestIsRefusedAtEveryLength) {
  expect_refused_at_each_length("manifest.json", "RM103", 1);
}

TEST_P(Cut, TheCommitIsRefusedAtEveryLength) {
  expect_refused_at_each_length("COMMIT", "RM103", 1);
}

TEST_P(Cut, ASideFileIsRefusedAtEveryLength) {
  expect_refused_at_each_length("side/config.json", "RM202", 1);
}

// A judge goes on with what is left, and finds nothing wrong elsewhere.
TEST_P(Cut, AShardIsTheOnlyFileThatAJudgeNames) {
  const std::string whole = content_of(checkpoint_ / shard_0);
  const std::uintmax_t stride = test::num_seeds(1) > 1 ? 1 : 61;
  for (std::uintmax_t length = 0; length < whole.size(); length += stride) {
    fs::resize_file(checkpoint_ / shard_0, length);
    const std::vector<Finding> found = judged();
    ASSERT_THAT(found, Contains(AllOf(Field(&Finding::id, "RM202"),
                                      Field(&Finding::severity, Severity::error))))
        << length;
    for (const Finding& finding : found) {
      ASSERT_THAT(finding.file, ::testing::AnyOf(Eq(shard_0), Eq(""))) << finding.message;
    }
    set_content(checkpoint_ / shard_0, whole);
  }
}

// There are no bytes beyond a file's end that could hash to anything.
TEST_P(Cut, NothingIsSaidOfWhatLiesBeyondTheEnd) {
  const std::string whole = content_of(checkpoint_ / shard_0);
  const std::uintmax_t stride = test::num_seeds(1) > 1 ? 1 : 61;
  int cut_through = 0;
  for (std::uintmax_t length = 0; length < whole.size(); length += stride) {
    fs::resize_file(checkpoint_ / shard_0, length);
    const auto end = static_cast<std::int64_t>(length);
    for (const Level level : {Level::quick, Level::full}) {
      for (const Finding& finding : judged(level)) {
        if (finding.id != "RM207") continue;
        ASSERT_TRUE(finding.bytes) << finding.message;
        ASSERT_LT(finding.bytes->begin, end) << finding.message;
        if (finding.bytes->end <= end) continue;
        ++cut_through;
        ASSERT_EQ(finding.found, "") << finding.message;
        ASSERT_THAT(finding.message, HasSubstr(fmt::format("the file ends at byte {}:", end)));
      }
    }
    set_content(checkpoint_ / shard_0, whole);
  }
  EXPECT_GT(cut_through, 0);
}

// Of blocks that follow each other some are there, one ends too early, and the others are not
// there.
TEST(CutInside, ATensorIsJudgedAsFarAsItIsThere) {
  const test::TemporaryDirectory directory;
  const fs::path checkpoint = directory / "ckpt";
  constexpr std::int64_t block = ExtentMap::block_bytes;
  const auto writer = create_native(
      posix_file_system(), checkpoint,
      test::small_catalog({{{"large", DType::f32, Box{{0, 5 * block / 1024}, {0, 256}}}, 0}}),
      test::side_bytes, {.job_id = "test"});
  test::write_and_seal(*writer);
  writer->publish();
  const std::int64_t begin = writer->extents().extents()[0].offset_bytes;
  std::string content = content_of(checkpoint / shard_0);
  content.resize(static_cast<std::size_t>(begin + 2 * block + 7));
  content[static_cast<std::size_t>(begin + block)] ^= 1;
  set_content(checkpoint / shard_0, content);

  test::Machine machine;
  const auto found = verify(machine.judge(), test::opener(checkpoint), Level::full).findings;
  std::vector<ByteRange> named;
  for (const Finding& finding : found) {
    if (finding.id == "RM207") named.push_back(*finding.bytes);
  }
  EXPECT_THAT(named, ElementsAre(ByteRange{begin + block, begin + 2 * block},
                                 ByteRange{begin + 2 * block, begin + 3 * block}));
  EXPECT_THAT(found, Contains(Field(&Finding::message, HasSubstr("one flipped bit explains it"))))
      << "of what is there";
}

// What is found at a tensor may follow from what is found at a file; the file's own comes too.

TEST_P(Cut, ShardsThatWereSwappedAreNamed) {
  fs::rename(checkpoint_ / shard_0, checkpoint_ / "x");
  fs::rename(checkpoint_ / shard_1, checkpoint_ / shard_0);
  fs::rename(checkpoint_ / "x", checkpoint_ / shard_1);
  expect_told("RM204", {shard_0, shard_1});
}

TEST_P(Cut, AShardThatWasRenamedIsMissedAndItsNewNameIsTold) {
  fs::rename(checkpoint_ / shard_1, checkpoint_ / "shard-00001-of-00008.h5");
  expect_told("RM203", {shard_1});
  EXPECT_THAT(judged(), Contains(AllOf(Field(&Finding::id, "RM108"),
                                       Field(&Finding::file, "shard-00001-of-00008.h5"))));
}

TEST_P(Cut, AShardThatWasRenamedOverAnotherIsBothMissedAndNamed) {
  fs::rename(checkpoint_ / shard_1, checkpoint_ / shard_0);
  expect_told("RM204", {shard_0});
  EXPECT_THAT(judged(),
              Contains(AllOf(Field(&Finding::id, "RM203"), Field(&Finding::file, shard_1))));
}

TEST_P(Cut, AShardThatWasCopiedOverAnotherIsCalledADuplicate) {
  fs::copy_file(checkpoint_ / shard_0, checkpoint_ / shard_1, fs::copy_options::overwrite_existing);
  expect_told("RM213", {shard_1});
  EXPECT_THAT(judged(),
              Contains(Field(&Finding::message,
                             HasSubstr(fmt::format(
                                 "it holds rank 0 of 4, but its name says rank 1 of 4; it is "
                                 "'{}' once more",
                                 shard_0)))));
}

TEST_P(Cut, AShardOfZerosIsCalledThat) {
  set_content(checkpoint_ / shard_0, std::string(fs::file_size(checkpoint_ / shard_0), '\0'));
  expect_told("RM212", {shard_0});
}

TEST_P(Cut, AShardWithZerosBehindItsHeaderHasWrongDigests) {
  std::string content = content_of(checkpoint_ / shard_0);
  std::fill(content.begin() + 4096, content.end(), '\0');
  set_content(checkpoint_ / shard_0, content);
  expect_told("RM207", {shard_0});
}

TEST_P(Cut, AShardOfAnotherCheckpointIsForeign) {
  write(directory_ / "other", "another run");
  fs::copy_file(directory_ / "other" / shard_1, checkpoint_ / shard_1,
                fs::copy_options::overwrite_existing);
  expect_told("RM109", {shard_1});
}

TEST_P(Cut, AManifestOfAnotherCheckpointIsNoticedByItsCommit) {
  write(directory_ / "other", "another run");
  fs::copy_file(directory_ / "other" / "manifest.json", checkpoint_ / "manifest.json",
                fs::copy_options::overwrite_existing);
  expect_told("RM103", {"COMMIT"});
  fs::copy_file(directory_ / "other" / "COMMIT", checkpoint_ / "COMMIT",
                fs::copy_options::overwrite_existing);
  expect_told("RM109", {shard_0, shard_1, "shard-00002-of-00004.h5", "shard-00003-of-00004.h5"});
}

TEST_P(Cut, NothingIsFoundBeforeAnythingIsDone) { EXPECT_THAT(judged(), IsEmpty()); }

INSTANTIATE_TEST_SUITE_P(Native, Cut, ::testing::Values(std::nullopt, 1),
                         [](const auto& param) { return param.param ? "compressed" : "plain"; });

}  // namespace
}  // namespace remesh
