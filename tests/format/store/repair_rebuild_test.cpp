#include <algorithm>
#include <csignal>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remesh/store/forwarding_file_system.hpp"
#include "remesh/store/secret.hpp"
#include "remesh/store/signing_key.hpp"
#include "repair_fixture.hpp"
#include "repair_salvage.hpp"
#include "seeds.hpp"

// manifest.json is lost: what the shards say is enough, or the copy is refused, and what is not
// proven to be as it was is told.

namespace remesh::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// What a shard holds besides its save id, and the CRC that goes with it.
std::string without_save_id(std::string shard) {
  std::fill_n(shard.begin() + 64, 16, '\0');
  std::fill_n(shard.begin() + 4088, 8, '\0');
  return shard;
}

// Rank 0 has the first tensor, rank 1 the last.
Catalog on_two_stages() {
  Catalog catalog;
  catalog.format = "remesh";
  catalog.tensors = {{"first", DType::f32, Box{{0, 4}}}, {"last", DType::f32, Box{{0, 6}}}};
  const std::vector<Placement> placements{
      {.pins = {{.axis = "pp", .to = PinTo::coordinates, .coordinates = {0}}}},
      {.pins = {{.axis = "pp", .to = PinTo::coordinates, .coordinates = {1}}}}};
  catalog.layout = Layout(Mesh({{"pp", 2}}), placements, {{0}, {1}}, {});
  return catalog;
}

class RepairRebuildTest : public RepairTest {
 protected:
  void lose_manifest() {
    fs::remove(source_ / "manifest.json");
    fs::remove(source_ / "COMMIT");
  }

  // Repairs, and expects the same tensors in shards that are the same but for the save id.
  RepairReport expect_rebuilt(const Catalog& before) {
    RepairReport report = repair();
    EXPECT_TRUE(report.written);
    EXPECT_FALSE(report.proven);
    EXPECT_THAT(report.lost, IsEmpty());
    if (!report.written) return report;
    const auto reader = open_strict(target_);
    EXPECT_EQ(reader->catalog().tensors, before.tensors);
    EXPECT_EQ(reader->catalog().digests, before.digests);
    EXPECT_THAT(damage_of(*reader), IsEmpty());
    rebuilt_ = reader->catalog();
    for (const auto& [name, content] : files_in(target_)) {
      if (!name.starts_with("shard-")) continue;
      EXPECT_TRUE(without_save_id(content) == without_save_id(original_.at(name))) << name;
    }
    fs::remove_all(target_);
    return report;
  }

  Catalog rebuilt_;
};

// Which layout they had follows from the boxes, and COMMIT says that it is the right one.
TEST_F(RepairRebuildTest, AManifestThatIsGoneIsMadeAgainByteForByte) {
  use_golden("compressed");
  fs::remove(source_ / "manifest.json");
  const RepairReport report = expect_repaired();
  EXPECT_THAT(report.notes, IsEmpty());
  ASSERT_THAT(report.mended, SizeIs(1));
  EXPECT_EQ(report.mended.front().file, "manifest.json");
  EXPECT_THAT(report.mended.front().how, HasSubstr("COMMIT records the same bytes"));
}

// Without COMMIT nothing records the bytes, but the save id binds what they say.
TEST_F(RepairRebuildTest, TheSaveIdProvesAllButTheBytes) {
  use_golden("compressed");
  lose_manifest();
  const RepairReport report = repair();
  EXPECT_TRUE(report.written);
  EXPECT_FALSE(report.proven);
  EXPECT_THAT(differing(files_in(target_), original_), IsEmpty());
  ASSERT_THAT(report.notes, Not(IsEmpty()));
  EXPECT_THAT(report.notes.front().message, HasSubstr("save id of the shards"));
}

// Layouts that no boxes tell: with experts, lines, stages, groups. What of the manifest is not
// damaged tells them, and COMMIT that all is as it was.
TEST_F(RepairRebuildTest, WhatADamagedManifestStillSaysIsEnough) {
  for (const std::string golden : {"copies", "experts", "lines", "splits", "stages"}) {
    use_golden(golden);
    const std::string& whole = original_.at("manifest.json");
    int proven = 0;
    int tried = 0;
    for (std::size_t at = 0; at + 48 < whole.size() && !HasFailure(); at += 97, ++tried) {
      SCOPED_TRACE(golden + ", from byte " + std::to_string(at));
      put("manifest.json", spoiled("manifest.json", at, at + 48));
      const RepairReport report = repair();
      if (!report.written) continue;
      proven += report.proven ? 1 : 0;
      if (report.proven) {
        EXPECT_THAT(differing(files_in(target_), original_), IsEmpty());
        EXPECT_THAT(report.notes, IsEmpty());
      } else {
        EXPECT_THAT(report.notes, Not(IsEmpty()));
      }
      fs::remove_all(target_);
    }
    EXPECT_GE(3 * proven, tried) << golden;
    EXPECT_LT(proven, tried) << golden << ": what says the layout can be spoiled too";
    fs::remove_all(source_);
  }
}

TEST_F(RepairRebuildTest, TheLayoutFollowsFromWhatRanksStore) {
  Catalog catalog = small_catalog({{{"rows", DType::f32, Box{{0, 5}, {0, 2}}}, 1},
                                   {{"columns", DType::f32, Box{{0, 3}, {0, 5}}}, 2},
                                   {{"whole", DType::bf16, Box{{0, 3}}}, 0},
                                   {{"last", DType::u8, Box{{0, 7}}}, 3},
                                   {{"empty", DType::u8, Box{{0, 0}}}, 1},
                                   {{"scalar", DType::f32, Box{}}, 0}});
  catalog.run_id = "run 7";
  catalog.side = {side_file("config.json")};
  for (const std::int64_t copies : {1, 2}) {
    SCOPED_TRACE(std::to_string(copies) + " copies");
    use(catalog, copies);
    const Catalog before = open_strict(source_)->catalog();
    lose_manifest();
    const RepairReport report = expect_rebuilt(before);
    EXPECT_EQ(rebuilt_.layout.mesh().num_ranks(), 4);
    EXPECT_LT(rebuilt_.layout.placements().size(), catalog.tensors.size()) << "equal ones, twice";
    EXPECT_EQ(rebuilt_.side, before.side);
    EXPECT_EQ(rebuilt_.run_id, "");
    EXPECT_NE(rebuilt_.save_id, before.save_id);
    EXPECT_THAT(report.notes, Each(Field(&Finding::severity, Severity::warn)));
    EXPECT_THAT(report.notes, Contains(Field(&Finding::message, HasSubstr("nothing proves"))));
    EXPECT_THAT(report.notes, Contains(Field(&Finding::file, "side")));
    expect_foretold(report);
    fs::remove_all(source_);
  }
}

TEST_F(RepairRebuildTest, TheCertificateSaysTheMesh) {
  use_golden("copies");
  const Catalog before = open_strict(source_)->catalog();
  lose_manifest();
  const RepairReport report = repair();
  ASSERT_TRUE(report.written);
  EXPECT_FALSE(report.proven);  // how the Hugging Face directory was packed is lost
  const auto reader = open_strict(target_);
  EXPECT_EQ(reader->catalog().save_id, before.save_id);
  EXPECT_EQ(reader->catalog().layout, before.layout);
  EXPECT_TRUE(reader->catalog().packaging.empty());
  EXPECT_THAT(report.notes, Contains(Field(&Finding::file, "proof.json")));
  EXPECT_FALSE(fs::exists(target_ / "proof.json"));
}

TEST_F(RepairRebuildTest, ALayoutThatNoSimpleRuleGivesIsRefused) {
  use_golden("lines");
  lose_manifest();
  const RepairReport report = expect_refused();
  EXPECT_EQ(report.lost.front().id, "RM203");
  EXPECT_THAT(report.lost.back().message, HasSubstr("no simple layout"));
}

TEST_F(RepairRebuildTest, ChangedPackagingIsNotBlessed) {
  use_golden("copies");
  std::string changed = original_.at("manifest.json");
  changed.replace(changed.find("model-00001"), 11, "MODEL-99999");
  put("manifest.json", changed);
  const RepairReport report = repair();
  ASSERT_TRUE(report.written);
  EXPECT_FALSE(report.proven);
  EXPECT_TRUE(open_strict(target_)->catalog().packaging.empty());
}

TEST_F(RepairRebuildTest, AMissingShardIsTold) {
  use(tiny_catalog(), 1);
  const auto [extent, file] = piece(0);
  lose_manifest();
  fs::remove(source_ / file);
  const RepairReport report = expect_refused();
  ASSERT_THAT(report.lost, SizeIs(2));
  EXPECT_EQ(report.lost.front().id, "RM301");
  EXPECT_EQ(report.lost.front().tensor, "w");
  EXPECT_EQ(report.lost.front().box, extent.box);
}

// The numbers of the tensors have no gap then, and each is whole.
TEST_F(RepairRebuildTest, AMissingShardWithTheLastTensorsIsTold) {
  use(on_two_stages(), 1);
  fs::remove(source_ / shard(1, 2));
  const std::size_t layout = original_.at("manifest.json").find("\"layout\"");
  put("manifest.json", spoiled("manifest.json", layout, layout + 48));
  RepairReport report = expect_refused();
  EXPECT_THAT(report.lost,
              Contains(AllOf(Field(&Finding::id, "RM301"), Field(&Finding::file, shard(1, 2)))));
  lose_manifest();
  report = expect_refused();
  EXPECT_THAT(report.lost, Contains(AllOf(Field(&Finding::id, "RM301"),
                                          Field(&Finding::message, HasSubstr("1 of 2 ranks")))));
}

TEST_F(RepairRebuildTest, WithoutAnyShardThereIsNothing) {
  use_golden("splits");
  for (int rank = 0; rank < 4; ++rank) fs::remove(source_ / shard(rank, 4));
  fs::remove(source_ / "manifest.json");
  EXPECT_THAT(expect_refused().lost.front().message, HasSubstr("no shards"));
}

TEST_F(RepairRebuildTest, ShardsOfTwoSavesAreRefused) {
  use(tiny_catalog(), 1);
  Catalog other = tiny_catalog();
  other.run_id = "another";
  write_checkpoint(directory_ / "other", other);
  put(shard(0, 4), content_of(directory_ / "other" / shard(0, 4)));
  lose_manifest();
  EXPECT_THAT(expect_refused().lost, Contains(Field(&Finding::id, "RM109")));
}

TEST_F(RepairRebuildTest, AShardUnderAnotherNameIsRefused) {
  use_golden("splits");
  put(shard(1, 4), original_.at(shard(2, 4)));
  lose_manifest();
  EXPECT_THAT(expect_refused().lost, Contains(Field(&Finding::id, "RM204")));
}

TEST_F(RepairRebuildTest, AShardWhoseHeaderIsSpoiledIsRefused) {
  use_golden("dtypes");
  lose_manifest();
  put(shard(1, 2), spoiled(shard(1, 2), 64, 80));
  EXPECT_EQ(expect_refused().lost.back().file, shard(1, 2));
  put(shard(1, 2), original_.at(shard(1, 2)).substr(0, 100));
  EXPECT_EQ(expect_refused().lost.back().id, "RM202");
}

// The shards vouch for themselves, so that bursts in them are still undone.
TEST_F(RepairRebuildTest, BurstsInTheShardsAreUndone) {
  use_golden("compressed");
  fs::remove(source_ / "manifest.json");
  const std::string file = shard(1, 2);
  const std::size_t stride = num_seeds(1) > 1 ? 1 : 61;
  for (std::size_t at = 0; at < original_.at(file).size() && !HasFailure(); at += stride) {
    SCOPED_TRACE("byte " + std::to_string(at));
    put(file, flipped(file, at, 1 << at % 8));
    EXPECT_THAT(expect_repaired().mended, Contains(Field(&Mend::file, file)));
  }
}

TEST_F(RepairRebuildTest, PayloadComesFromTheCopies) {
  use(tiny_catalog(), 2);
  const Catalog before = open_strict(source_)->catalog();
  const auto [extent, file] = piece(0, 0);
  put(file, spoiled(file, begin_of(extent), end_of(extent)));
  lose_manifest();
  EXPECT_THAT(expect_rebuilt(before).mended, Contains(Field(&Mend::by, MendedBy::copy)));
}

TEST_F(RepairRebuildTest, PayloadThatIsLostIsRefused) {
  use(tiny_catalog(), 1);
  const auto [extent, file] = piece(0);
  put(file, spoiled(file, begin_of(extent), end_of(extent)));
  lose_manifest();
  const RepairReport report = expect_refused();
  EXPECT_THAT(report.lost, Contains(Field(&Finding::id, "RM207")));
  EXPECT_THAT(report.lost, Contains(Field(&Finding::tensor, "w")));
}

TEST_F(RepairRebuildTest, OtherDigestsThanTheCertificateHasAreRefused) {
  use_golden("copies");
  const auto reader = open_strict(source_);
  const std::string digest = to_string(reader->catalog().digests[1]);
  std::string text = original_.at("proof.json");
  text.resize(text.size() - certificate_end_bytes);
  for (std::size_t at = text.find(digest); at != std::string::npos; at = text.find(digest, at)) {
    text.replace(at, digest.size(), "crc64xz:0123456789abcdef");
  }
  const auto bytes = std::as_bytes(std::span(text));
  put("proof.json", text + std::string(certificate_end) + to_string(digest_of(bytes)) + "\"}");
  lose_manifest();
  const RepairReport report = expect_refused();
  EXPECT_THAT(report.lost, Contains(Field(&Finding::message, HasSubstr("but proof.json records"))));
}

// What the manifest lists makes the save id, whatever else lies there.
TEST_F(RepairRebuildTest, AStrayAmongTheSideFilesIsLeftOut) {
  use(tiny_catalog(), 2);
  const std::string& whole = original_.at("manifest.json");
  const std::size_t digest = whole.find("\"digest\"", whole.find("\"tensors\""));
  put("manifest.json", spoiled("manifest.json", digest, digest + 40));
  put("side/.DS_Store", "stray");
  EXPECT_THAT(expect_repaired().notes, Contains(Field(&Finding::file, "side/.DS_Store")));
}

TEST_F(RepairRebuildTest, ASideFileThatTheListContradictsIsTakenAsItLies) {
  use(tiny_catalog(), 2);
  const std::string& whole = original_.at("manifest.json");
  const std::size_t digest = whole.find("\"digest\"", whole.find("\"tensors\""));
  put("manifest.json", spoiled("manifest.json", digest, digest + 40));
  put("side/config.json", "another one, and no burst away from it");
  const RepairReport report = repair();
  ASSERT_TRUE(report.written);
  EXPECT_FALSE(report.proven);
  EXPECT_THAT(report.notes, Contains(Field(&Finding::file, "side")));
  EXPECT_EQ(content_of(target_ / "side/config.json"), content_of(source_ / "side/config.json"));
}

TEST_F(RepairRebuildTest, ANameThatNoManifestCanListIsLeftOut) {
  use(tiny_catalog(), 2);
  const Catalog before = open_strict(source_)->catalog();
  lose_manifest();
  put("side/two\nlines", "stray");
  put("side/\xff", "stray");
  const RepairReport report = expect_rebuilt(before);
  EXPECT_EQ(rebuilt_.side, before.side);
  EXPECT_THAT(report.notes, Contains(Field(&Finding::file, "side/two\nlines")));
  EXPECT_THAT(report.notes, Contains(Field(&Finding::file, "side/\xff")));
}

TEST_F(RepairRebuildTest, ASideFileBeyondTheBudgetIsNotRead) {
  use(tiny_catalog(), 2);
  lose_manifest();
  put("side/core", "");
  fs::resize_file(source_ / "side/core", std::uintmax_t{1} << 30);
  try {
    repair();
    FAIL() << "1 GiB was read into 64 MiB";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::out_of_memory);
    EXPECT_THAT(error.what(), HasSubstr("side/core"));
  }
}

// The second has a number where the name of the first has a '#'.
TEST(RepairSalvage, NamesThatDifferInMoreThanNumbersAreNoSiblings) {
  const std::vector<TensorDesc> tensors{{"w#", DType::u8, Box{}}, {"w1", DType::u8, Box{}}};
  const auto salvaged = native::salvage(
      R"({"layout":{},"mesh":{},"tensors":[{"layer":3,"name":"w#","placement":0,"shape":[]},?]})",
      tensors);
  ASSERT_TRUE(salvaged);
  EXPECT_THAT(salvaged->placed, ElementsAre(Placed{0, 3, -1}, Placed{}));
}

// A disk on which somebody asks to stop when config.json is opened for the `at`-th time.
class StoppingFiles final : public ForwardingFileSystem {
 public:
  StoppingFiles(FileSystem& inner, StopFlag& stop, int at)
      : ForwardingFileSystem(inner), stop_(stop), left_(at) {}

  std::unique_ptr<File> open(const Path& path) const override {
    if (path.filename() == "config.json" && --left_ == 0) stop_.request(SIGTERM);
    return ForwardingFileSystem::open(path);
  }
  int left() const { return left_; }

 private:
  StopFlag& stop_;
  mutable int left_;
};

// RFC 8032, section 7.1, test 1: the seed and the public key.
constexpr unsigned char rfc_key[] = {
    0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4,
    0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60,
    0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe, 0xd3, 0xc9, 0x64, 0x07, 0x3a,
    0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6, 0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a};

class RepairStopTest : public RepairRebuildTest {
 protected:
  bool is_stopped(int at, bool dry_run) {
    StoppingFiles files(files_, stop_, at);
    try {
      repair(dry_run, &files);
      return false;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::stopped) << error.what();
      return true;
    }
  }

  void use_signed() {
    Secret secret(sizeof rfc_key);
    std::ranges::copy(std::as_bytes(std::span(rfc_key)), secret.bytes().begin());
    auto key = std::make_shared<const SecretKey>(KeyId{1}, std::move(secret));
    write_checkpoint(source_, tiny_catalog(), {.sign = std::move(key), .job_id = "test"});
    original_ = files_in(source_);
  }
};

TEST_F(RepairStopTest, TheSearchForALayoutStops) {
  use(tiny_catalog(), 2);
  lose_manifest();
  EXPECT_TRUE(is_stopped(1, /*dry_run=*/true));
}

TEST_F(RepairStopTest, TreeHashesOfARebuiltManifestStop) {
  use_signed();
  put("manifest.json", spoiled("manifest.json", 0, 48));
  EXPECT_TRUE(is_stopped(2, /*dry_run=*/true));
}

TEST_F(RepairStopTest, TreeHashesOfTheResultStop) {
  use_signed();
  fs::remove(source_ / "COMMIT");
  constexpr int many = 1000;
  StoppingFiles counting(files_, stop_, many);
  repair(/*dry_run=*/false, &counting);
  ASSERT_TRUE(fs::exists(target_));
  fs::remove_all(target_);
  EXPECT_TRUE(is_stopped(many - counting.left(), /*dry_run=*/false));
  EXPECT_FALSE(fs::exists(target_));
}

TEST_F(RepairRebuildTest, ASignatureOfWhatIsLostIsLeftOut) {
  use(tiny_catalog(), 2);
  put("manifest.json.minisig", "four lines");
  const Catalog before = open_strict(source_)->catalog();
  lose_manifest();
  const RepairReport report = expect_rebuilt(before);
  EXPECT_THAT(report.notes, Contains(Field(&Finding::file, "manifest.json.minisig")));
}

}  // namespace
}  // namespace remesh::test
