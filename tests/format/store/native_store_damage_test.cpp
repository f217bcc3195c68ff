// What a checkpoint that was damaged, cut, mixed or forged is refused with, and where.

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "little_endian.hpp"
#include "manifest.hpp"
#include "native_fixture.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/native_store.hpp"
#include "shard_reader.hpp"
#include "shard_writer.hpp"
#include "temporary_directory.hpp"

namespace remesh {
namespace {

using test::content_of;
using test::damage_of;
using test::ids_of;
using test::open_strict;
using test::refusal;
using test::set_content;
using test::TemporaryDirectory;
using test::write_checkpoint;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StrEq;

namespace fs = std::filesystem;

const std::string shard_0 = "shard-00000-of-00004.h5";
const std::string shard_1 = "shard-00001-of-00004.h5";

class DamageTest : public ::testing::Test {
 protected:
  void SetUp() override { write_checkpoint(path_, test::tiny_catalog()); }

  // Changes a file and says so in manifest and COMMIT: what is left is to be noticed by itself.
  void forge(const std::string& shard, const std::function<void(native::ShardDraft&)>& change) {
    const auto file = posix_file_system().open_for_writing(path_ / shard);
    StrictFindings findings;
    const auto header = native::read_header(*file, path_ / shard, shard, findings)->header;
    native::ShardDraft draft{header,
                             *native::read_index(*file, header, path_ / shard, shard, findings)};
    change(draft);
    const std::vector<std::byte> index = native::encode(draft.index);
    ASSERT_EQ(std::ssize(index), header.index.end - header.index.begin);
    file->write_at(header.index.begin, index);
    draft.header.index_crc = digest_of(index);
    file->write_at(0, native::encode(draft.header));
    rewrite_manifest([&](nlohmann::json& manifest) {
      for (auto& entry : manifest["files"]) {
        if (entry["name"] != shard) continue;
        entry["header_crc"] = to_string(native::header_crc(native::encode(draft.header)));
      }
    });
  }

  void rewrite_manifest(const std::function<void(nlohmann::json&)>& change) {
    auto manifest = nlohmann::json::parse(content_of(path_ / "manifest.json"));
    change(manifest);
    set_content(path_ / "manifest.json", manifest.dump());
    set_content(path_ / "COMMIT", native::commit_line(manifest.dump()));
  }

  std::vector<Finding> findings() const {
    CollectedFindings findings;
    (void)open_native(posix_file_system(), path_, findings);
    return findings.all;
  }

  TemporaryDirectory directory_;
  fs::path path_ = directory_ / "ckpt";
};

// The promise of the format: there is no byte that may change unnoticed.
TEST_F(DamageTest, EveryFlippedByteIsRefusedOrHasAWrongDigest) {
  fs::remove_all(path_);
  Catalog one_rank = test::tiny_catalog();
  one_rank.layout = Layout::replicated({}, one_rank.tensors.size());
  write_checkpoint(path_, one_rank);
  std::int64_t flips = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path_)) {
    if (!entry.is_regular_file()) continue;
    const auto file = posix_file_system().open_for_writing(entry.path());
    std::vector<std::byte> whole(static_cast<std::size_t>(file->size_bytes()));
    file->read_at(0, whole);
    for (std::int64_t at = 0; at < std::ssize(whole); ++at) {
      const std::byte was = whole[static_cast<std::size_t>(at)];
      const std::byte flipped = was ^ static_cast<std::byte>(1U << (at % 8));
      file->write_at(at, std::span(&flipped, 1));
      CollectedFindings findings;
      const auto reader = open_native(posix_file_system(), path_, findings);
      const bool noticed = !findings.all.empty() || !damage_of(*reader).empty();
      ASSERT_TRUE(noticed) << entry.path() << ", byte " << at;
      file->write_at(at, std::span(&was, 1));
      ++flips;
    }
  }
  EXPECT_GT(flips, 6000);
  EXPECT_THAT(damage_of(*open_strict(path_)), IsEmpty()) << "all was put back";
}

TEST_F(DamageTest, EveryTruncationIsNoticedByItsSize) {
  for (const auto& name : {shard_0, shard_1}) {
    const std::string whole = content_of(path_ / name);
    for (std::size_t length = 0; length < whole.size(); length += length < 4200 ? 97 : 611) {
      fs::resize_file(path_ / name, length);
      EXPECT_EQ(refusal(path_), "RM202") << name << " cut to " << length;
      EXPECT_THAT(ids_of(path_), Contains("RM202"));
      set_content(path_ / name, whole);
    }
    fs::resize_file(path_ / name, whole.size() - 1);
    EXPECT_EQ(refusal(path_), "RM202");
    set_content(path_ / name, whole);
  }
}

TEST_F(DamageTest, ATruncatedShardIsReportedInFull) {
  const auto size = static_cast<std::int64_t>(fs::file_size(path_ / shard_0));
  fs::resize_file(path_ / shard_0, static_cast<std::size_t>(size - 3));
  const auto found = findings();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].id, "RM202");
  EXPECT_EQ(found[0].file, shard_0);
  EXPECT_EQ(found[0].bytes, (ByteRange{size - 3, size}));
  EXPECT_THAT(found[0].message,
              StrEq(fmt::format("cannot read '{}': it has {} bytes, but manifest.json records {}; "
                                "it was cut short",
                                (path_ / shard_0).string(), size - 3, size)));
}

TEST_F(DamageTest, BytesBehindTheEndOfAShardAreReported) {
  std::ofstream(path_ / shard_0, std::ios::app) << "x";
  EXPECT_EQ(refusal(path_), "RM208");
  EXPECT_THAT(ids_of(path_), ElementsAre("RM208"));
}

TEST_F(DamageTest, TheHeaderAndTheIndexAreNamedByTheirBytes) {
  const std::string whole = content_of(path_ / shard_0);
  std::string broken = whole;
  broken[70] ^= 1;
  set_content(path_ / shard_0, broken);
  auto found = findings();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].id, "RM207");
  EXPECT_EQ(found[0].bytes, (ByteRange{0, 4096}));

  const auto index = native::load<std::int64_t>(std::as_bytes(std::span(whole)), 24);
  broken = whole;
  broken[static_cast<std::size_t>(index) + 5] ^= 1;
  set_content(path_ / shard_0, broken);
  found = findings();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].id, "RM207");
  EXPECT_EQ(found[0].bytes->begin, index);
  EXPECT_THAT(found[0].message, HasSubstr("the index is damaged"));
}

TEST_F(DamageTest, AMissingShardIsOneFindingAndTheRestIsRead) {
  fs::remove(path_ / shard_0);
  CollectedFindings findings;
  const auto reader = open_native(posix_file_system(), path_, findings);
  ASSERT_EQ(findings.all.size(), 1U) << "what it held is not reported again";
  EXPECT_EQ(findings.all[0].id, "RM203");
  EXPECT_EQ(findings.all[0].file, shard_0);
  EXPECT_EQ(refusal(path_), "RM203");
  ASSERT_NE(reader, nullptr);
  std::vector<std::byte> bytes(16);
  reader->read(0, Box{{2, 4}, {0, 2}}, bytes, {});
  EXPECT_EQ(bytes, test::numbered(reader->catalog().tensors[0], Box{{2, 4}, {0, 2}}));
}

TEST_F(DamageTest, SwappedShardsAreNotTakenForEachOther) {
  fs::rename(path_ / shard_0, path_ / "x");
  fs::rename(path_ / shard_1, path_ / shard_0);
  fs::rename(path_ / "x", path_ / shard_1);
  EXPECT_EQ(refusal(path_), "RM204");
  EXPECT_THAT(ids_of(path_), ElementsAre("RM204", "RM204"));
}

TEST_F(DamageTest, AShardOfAnotherSaveIsNotTakenWhateverItsSize) {
  Catalog other = test::tiny_catalog();
  other.run_id = "another run";
  write_checkpoint(directory_ / "same size", other);
  other.tensors[0].extent[1].end = 70'000;
  write_checkpoint(directory_ / "larger", other);
  for (const char* from : {"same size", "larger"}) {
    fs::copy_file(directory_ / from / shard_0, path_ / shard_0,
                  fs::copy_options::overwrite_existing);
    EXPECT_EQ(refusal(path_), "RM109") << from;
    EXPECT_THAT(ids_of(path_), ElementsAre("RM109")) << from;
  }
}

TEST_F(DamageTest, AShardThatIsNoRegularFileIsNotOpened) {
  fs::rename(path_ / shard_0, directory_ / "outside.h5");
  fs::create_symlink("../outside.h5", path_ / shard_0);
  EXPECT_EQ(refusal(path_), "RM604");
  EXPECT_THAT(ids_of(path_), ElementsAre("RM604"));
}

TEST_F(DamageTest, AForeignFileInTheNameOfAShardIsNoShard) {
  set_content(path_ / shard_0, std::string(9000, 'x'));
  EXPECT_EQ(refusal(path_), "RM207");
  set_content(path_ / shard_0, "");
  EXPECT_EQ(refusal(path_), "RM202");
}

TEST_F(DamageTest, WithoutCommitItIsNoCheckpoint) {
  fs::remove(path_ / "COMMIT");
  EXPECT_THAT(ids_of(path_), ElementsAre("RM105"));
  try {
    open_strict(path_);
    FAIL() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.id(), "RM105");
    EXPECT_EQ(error.code(), Errc::not_found);
  }
}

TEST_F(DamageTest, ACommitOfAnotherManifestIsNoticedBeforeItIsParsed) {
  set_content(path_ / "manifest.json", "{ this is no JSON");
  EXPECT_THAT(ids_of(path_), ElementsAre("RM103", "RM103"));
  try {
    open_strict(path_);
    FAIL() << "opened";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("one of the two was changed"));
  }
}

TEST_F(DamageTest, AnEmptyOrLongCommitIsRefused) {
  for (const std::size_t length : {0U, 1U, 5000U}) {
    set_content(path_ / "COMMIT", std::string(length, 'x'));
    EXPECT_EQ(refusal(path_), "RM103") << length;
  }
}

TEST_F(DamageTest, AMissingManifestIsIncomplete) {
  fs::remove(path_ / "manifest.json");
  EXPECT_EQ(refusal(path_), "RM203");
  EXPECT_THAT(ids_of(path_), ElementsAre("RM203"));
}

TEST_F(DamageTest, AnotherVersionIsRefusedByName) {
  rewrite_manifest([](nlohmann::json& manifest) { manifest["format_version"] = 2; });
  try {
    open_strict(path_);
    FAIL() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::unsupported);
    EXPECT_EQ(error.id(), "RM102");
    EXPECT_THAT(error.what(),
                StrEq(fmt::format("cannot read '{}': it has format version 2; this remesh reads "
                                  "version 1",
                                  (path_ / "manifest.json").string())));
  }
}

TEST_F(DamageTest, WhatIsNotThereIsNotACheckpoint) {
  for (const auto& path : {directory_ / "none", directory_.path(), path_ / "COMMIT"}) {
    EXPECT_EQ(refusal(path), "RM101") << path;
    CollectedFindings findings;
    EXPECT_EQ(open_native(posix_file_system(), path, findings), nullptr);
  }
}

TEST_F(DamageTest, FilesThatNobodyListsAreReportedButDoNotMatter) {
  set_content(path_ / "notes.txt", "x");
  set_content(path_ / "shard-00003-of-00004.h5", "stale");
  set_content(path_ / "side/extra", "x");
  EXPECT_THAT(ids_of(path_), ElementsAre("RM108", "RM108", "RM108"));
  EXPECT_EQ(refusal(path_), "");
  EXPECT_THAT(findings(), Contains(Field(&Finding::severity, Severity::warn)).Times(3));
}

TEST_F(DamageTest, SideFilesAreCountedAndGuarded) {
  set_content(path_ / "side/config.json", "config.jsonconfig.jsoX");
  EXPECT_THAT(ids_of(path_), IsEmpty());
  EXPECT_THAT(damage_of(*open_strict(path_)), ElementsAre("side file"));
  set_content(path_ / "side/config.json", "short");
  EXPECT_EQ(refusal(path_), "RM202");
  set_content(path_ / "side/config.json", std::string(100, 'x'));
  EXPECT_EQ(refusal(path_), "RM208");
  fs::remove(path_ / "side/config.json");
  EXPECT_EQ(refusal(path_), "RM203");
  fs::create_symlink("/etc/passwd", path_ / "side/config.json");
  EXPECT_EQ(refusal(path_), "RM604");
  fs::remove_all(path_ / "side");
  EXPECT_EQ(refusal(path_), "RM203");
  fs::create_directory_symlink("/etc", path_ / "side");
  EXPECT_THAT(ids_of(path_), Contains("RM604"));
}

TEST_F(DamageTest, AShardThatWasNeverSealedIsNotPartOfACheckpoint) {
  forge(shard_0, [](native::ShardDraft& draft) { draft.header.sealed = false; });
  EXPECT_EQ(refusal(path_), "RM105");
}

TEST_F(DamageTest, AHeaderThatTheManifestDoesNotNameIsRefused) {
  const auto file = posix_file_system().open_for_writing(path_ / shard_0);
  StrictFindings strict;
  auto header = native::read_header(*file, path_ / shard_0, shard_0, strict)->header;
  header.complement_crc.value ^= 1;
  file->write_at(0, native::encode(header));
  EXPECT_EQ(refusal(path_), "RM207");
}

TEST_F(DamageTest, AnIndexThatDescribesAnotherTensorIsRefused) {
  forge(shard_0, [](native::ShardDraft& draft) { draft.index.tensors[0].desc.name.back() = 'v'; });
  EXPECT_EQ(refusal(path_), "RM303");
  EXPECT_THAT(
      findings()[0].message,
      HasSubstr("it has tensor 0 as 'v' (f32, [0, 4) x [0, 2)), but manifest.json lists 'w'"));
}

TEST_F(DamageTest, AnIndexWithATensorThatTheManifestLacksIsRefused) {
  forge(shard_0, [](native::ShardDraft& draft) { draft.index.tensors.back().number = 77; });
  EXPECT_EQ(refusal(path_), "RM303");
}

TEST_F(DamageTest, ABoxThatTheLayoutGivesToAnotherRankIsRefused) {
  forge(shard_0, [](native::ShardDraft& draft) { draft.index.extents[0].box[0] = {1, 3}; });
  EXPECT_EQ(refusal(path_), "RM304");
  const auto found = findings();
  EXPECT_EQ(found[0].tensor, "w");
  EXPECT_EQ(found[0].box, (Box{{1, 3}, {0, 2}}));
  EXPECT_THAT(found[0].message,
              HasSubstr("rank 0 stores it, but the layout gives [0, 2) x [0, 2)"));
}

// A shard that the manifest does not even list: the layout alone tells that something is missing.
TEST_F(DamageTest, AnElementThatNoShardStoresIsAHole) {
  fs::remove(path_ / shard_1);
  rewrite_manifest([](nlohmann::json& manifest) { manifest["files"].erase(1); });
  EXPECT_EQ(refusal(path_), "RM301");
  const auto found = findings();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].tensor, "w");
  EXPECT_EQ(found[0].box, (Box{{2, 4}, {0, 2}}));
  EXPECT_THAT(found[0].message,
              StrEq(fmt::format("cannot use '{}': of 'w' (f32, [0, 4) x [0, 2)), [2, 4) x [0, 2): "
                                "no shard stores it as copy 0",
                                path_.string())));
}

TEST_F(DamageTest, AnElementThatIsStoredTwiceAsTheSameCopyIsRefused) {
  fs::remove_all(path_);
  write_checkpoint(path_, test::tiny_catalog(), {.copies = 2, .job_id = "test"});
  ASSERT_EQ(refusal(path_), "");
  for (const char* shard : {"shard-00002-of-00004.h5", "shard-00003-of-00004.h5"}) {
    forge(shard, [](native::ShardDraft& draft) {
      for (Extent& extent : draft.index.extents) extent.copy = 0;
    });
  }
  EXPECT_EQ(refusal(path_), "RM304");
  EXPECT_THAT(findings()[0].message, HasSubstr("both store it as copy 0"));
}

TEST_F(DamageTest, ACopyNumberThatNoOtherCopyLeadsUpToIsRefused) {
  fs::remove_all(path_);
  write_checkpoint(path_, test::tiny_catalog(), {.copies = 2, .job_id = "test"});
  for (const char* shard : {"shard-00002-of-00004.h5", "shard-00003-of-00004.h5"}) {
    forge(shard, [](native::ShardDraft& draft) {
      for (Extent& extent : draft.index.extents) extent.copy = 3;
    });
  }
  EXPECT_EQ(refusal(path_), "RM304");
  EXPECT_THAT(findings()[0].message, HasSubstr("stores copy 3, but there are 1 before it"));
}

TEST_F(DamageTest, ACopyNumberBeyondTheRanksIsNotBelieved) {
  for (const std::uint32_t copy : {4U, 0x7fffffffU, 0xffffffffU}) {
    fs::remove_all(path_);
    write_checkpoint(path_, test::tiny_catalog());
    forge(shard_0, [&](native::ShardDraft& draft) { draft.index.extents.back().copy = copy; });
    EXPECT_THAT(findings()[0].message, HasSubstr("but there are 4 ranks"));
  }
}

TEST_F(DamageTest, ATensorThatNobodyStoresIsAHoleEvenWithoutElements) {
  fs::remove_all(path_);
  write_checkpoint(path_, test::small_catalog({{{"empty", DType::f32, Box{{0, 0}}}, 0}}));
  ASSERT_EQ(refusal(path_), "");
  fs::remove(path_ / shard_0);
  rewrite_manifest([](nlohmann::json& manifest) { manifest["files"].clear(); });
  EXPECT_EQ(refusal(path_), "RM301");
}

TEST_F(DamageTest, AllShardsAreReportedAtOnce) {
  fs::remove(path_ / shard_0);
  set_content(path_ / shard_1, "x");
  std::ofstream(path_ / "shard-00002-of-00004.h5", std::ios::app) << "x";
  EXPECT_THAT(ids_of(path_), ElementsAre("RM203", "RM202", "RM208"));
}

}  // namespace
}  // namespace remesh
