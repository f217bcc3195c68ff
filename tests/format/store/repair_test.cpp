#include "remesh/store/repair.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "repair_fixture.hpp"
#include "seeds.hpp"

// Whatever is damaged: the copy is the original, byte for byte, or there is none.

namespace remesh::test {
namespace {

namespace fs = std::filesystem;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(RepairTest, WritesNothingWhereNothingIsWrong) {
  use_golden("copies");
  const RepairReport report = repair();
  EXPECT_FALSE(report.written);
  EXPECT_THAT(report.mended, IsEmpty());
  EXPECT_THAT(report.lost, IsEmpty());
  EXPECT_THAT(report.notes, IsEmpty());
  EXPECT_FALSE(fs::exists(target_));
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_.path()), {}), 1) << "a leftover";
}

// Every byte with `./dev soak`; otherwise every so many, since each repair costs milliseconds of
// system calls. Which bit flips changes from byte to byte.
std::size_t stride(std::size_t usual) { return num_seeds(1) > 1 ? 1 : usual; }

// Manifest, COMMIT and certificate vouch for each other, so only one of them is damaged at a time.
TEST_F(RepairTest, UndoesAFlippedBitInEveryByteOfTheDocuments) {
  use_golden("copies");
  for (const std::string file : {"COMMIT", "manifest.json", "proof.json"}) {
    for (std::size_t at = 0; at < original_.at(file).size() && !HasFailure(); at += stride(5)) {
      SCOPED_TRACE("byte " + std::to_string(at) + " of " + file);
      put(file, flipped(file, at, 1 << at % 8));
      const RepairReport report = expect_repaired();
      EXPECT_THAT(report.mended, ElementsAre(Field(&Mend::file, file)));
      EXPECT_THAT(report.notes, IsEmpty());
    }
    restore(file);
  }
}

// All shards and side files at once: what is mended in one of them needs no other.
TEST_F(RepairTest, UndoesAFlippedBitInEveryByteOfShardsAndSideFiles) {
  use_golden("copies");
  const std::vector<std::string> names{shard(0, 3), shard(1, 3), shard(2, 3), "side/config.json",
                                       "side/tokenizer.model"};
  const std::size_t longest = original_.at(names.front()).size();
  for (std::size_t at = 0; at < longest && !HasFailure(); at += stride(23)) {
    SCOPED_TRACE("byte " + std::to_string(at));
    std::vector<std::string> damaged;
    for (const std::string& file : names) {
      if (at < original_.at(file).size()) {
        put(file, flipped(file, at, 1 << at % 8));
        damaged.push_back(file);
      } else {
        restore(file);
      }
    }
    std::vector<std::string> mended;
    for (const Mend& mend : expect_repaired().mended) mended.push_back(mend.file);
    EXPECT_EQ(mended, damaged);
  }
}

TEST_F(RepairTest, UndoesRandomBurstsWithoutAnyCopy) {
  constexpr unsigned seed = 20260717;
  SCOPED_TRACE("seed " + std::to_string(seed));
  use_golden("splits");
  std::mt19937 engine(seed);
  for (int count = 0; count < 400 && !HasFailure(); ++count) {
    auto chosen = original_.begin();
    std::advance(chosen, static_cast<std::ptrdiff_t>(engine() % original_.size()));
    const auto& [file, content] = *chosen;
    std::string damaged = content;
    const std::uint32_t pattern = (engine() & 0x7FFFu) << 1 | 1u;  // 16 bits
    const auto first = engine() % static_cast<std::uint32_t>(8 * content.size() - 16);
    for (std::uint32_t bit = 0; bit < 16; ++bit) {
      if ((pattern >> bit & 1u) == 0) continue;
      char& byte = damaged[(first + bit) / 8];
      byte = static_cast<char>(byte ^ 1 << (first + bit) % 8);
    }
    SCOPED_TRACE("burst at bit " + std::to_string(first) + " of " + file);
    put(file, damaged);
    expect_repaired();
    restore(file);
  }
}

TEST_F(RepairTest, MakesAMissingShardAgainFromTheCopies) {
  use_golden("copies");
  for (int rank = 0; rank < 3; ++rank) {
    const std::string file = shard(rank, 3);
    SCOPED_TRACE(file);
    fs::remove(source_ / file);
    const RepairReport report = expect_repaired();
    EXPECT_THAT(report.mended, Each(Field(&Mend::file, file)));
    EXPECT_EQ(report.mended.front().by, MendedBy::rule);
    EXPECT_EQ(report.mended.back().by, MendedBy::copy);
    restore(file);
  }
}

TEST_F(RepairTest, NamesWhatAMissingShardHeldAlone) {
  use(tiny_catalog(), 1);
  const auto [extent, file] = piece(0);
  fs::remove(source_ / file);
  const RepairReport report = expect_refused();
  EXPECT_EQ(report.lost.front().id, "RM203");
  EXPECT_EQ(report.lost.front().file, file);
  EXPECT_THAT(report.lost.front().message, HasSubstr("stored nowhere else"));
  ASSERT_GE(report.lost.size(), 2u);
  EXPECT_EQ(report.lost[1].id, "RM301");
  EXPECT_EQ(report.lost[1].tensor, "w");
  EXPECT_EQ(report.lost[1].box, extent.box);
}

TEST_F(RepairTest, TwoMissingShardsOfThreeAreTooMany) {
  use_golden("copies");
  fs::remove(source_ / shard(0, 3));
  fs::remove(source_ / shard(1, 3));
  const RepairReport report = expect_refused();
  EXPECT_EQ(report.lost.front().id, "RM203");
}

TEST_F(RepairTest, MakesACutShardWholeFromTheCopies) {
  use_golden("copies");
  const std::string file = shard(0, 3);
  const std::string& whole = original_.at(file);
  for (std::size_t length = 0; length < whole.size() && !HasFailure(); length += 97) {
    SCOPED_TRACE("cut to " + std::to_string(length));
    put(file, whole.substr(0, length));
    expect_repaired();
  }
}

TEST_F(RepairTest, LeavesOutWhatWasAppended) {
  use_golden("copies");
  for (const std::string& file : {shard(1, 3), std::string("side/config.json")}) {
    SCOPED_TRACE(file);
    put(file, original_.at(file) + "more");
    const RepairReport report = expect_repaired();
    EXPECT_THAT(report.mended, Each(Field(&Mend::by, MendedBy::cut)));
    restore(file);
  }
}

TEST_F(RepairTest, MakesHeaderAndMetadataAgainWithoutAnyCopy) {
  use_golden("splits");
  const std::string file = shard(2, 4);
  for (const auto& [begin, end] :
       {std::pair<std::size_t, std::size_t>{0, 4096}, {4096, 4500}, {0, 5000}, {64, 80}}) {
    SCOPED_TRACE("bytes " + std::to_string(begin) + " to " + std::to_string(end));
    put(file, spoiled(file, begin, end));
    const RepairReport report = expect_repaired();
    EXPECT_THAT(report.mended, SizeIs(1));
    EXPECT_EQ(report.mended.front().by, MendedBy::rule);
  }
}

TEST_F(RepairTest, RefusesALostHeaderOverDamagedPayload) {
  use(tiny_catalog(), 1);
  const auto [extent, file] = piece(0);
  std::string damaged = spoiled(file, 0, 4096);
  damaged[begin_of(extent)] = static_cast<char>(~damaged[begin_of(extent)]);
  put(file, damaged);
  const RepairReport report = expect_refused();
  EXPECT_THAT(report.lost.front().message, HasSubstr("made again its header hashes to"));
}

TEST_F(RepairTest, PrefersAnIntactCopyToABurst) {
  use_golden("copies");
  const auto [extent, file] = piece(0, 0);
  put(file, flipped(file, begin_of(extent), 4));
  const RepairReport report = expect_repaired();
  ASSERT_THAT(report.mended, SizeIs(1));
  EXPECT_EQ(report.mended.front().by, MendedBy::copy);
  EXPECT_EQ(report.mended.front().tensor, "w");
  EXPECT_EQ(report.mended.front().box, extent.box);
}

TEST_F(RepairTest, SaysWhichBitsItFlippedBack) {
  use(tiny_catalog(), 1);
  const auto [extent, file] = piece(0);
  put(file, flipped(file, begin_of(extent) + 1, 8));
  const RepairReport report = expect_repaired();
  ASSERT_THAT(report.mended, SizeIs(1));
  EXPECT_EQ(report.mended.front().by, MendedBy::flip);
  EXPECT_EQ(report.mended.front().how,
            "1 bit flipped back: bit 3 of byte " + std::to_string(extent.offset_bytes + 1));
}

TEST_F(RepairTest, TwoDamagesInOneBlockNeedACopy) {
  use(tiny_catalog(), 1);
  const auto [extent, file] = piece(0);
  put(file, spoiled(file, begin_of(extent), end_of(extent)));
  const RepairReport report = expect_refused();
  ASSERT_THAT(report.lost, SizeIs(1));
  EXPECT_EQ(report.lost.front().id, "RM207");
  EXPECT_EQ(report.lost.front().tensor, "w");
  EXPECT_EQ(report.lost.front().bytes,
            (ByteRange{extent.offset_bytes, extent.offset_bytes + extent.length_bytes}));
  EXPECT_THAT(report.lost.front().message, HasSubstr("no other copy is stored"));
}

TEST_F(RepairTest, DamageInBothCopiesIsMendedIfOneIsABurst) {
  use_golden("copies");
  const auto [first, first_file] = piece(0, 0);
  const auto [second, second_file] = piece(0, 1);
  ASSERT_NE(first_file, second_file);
  put(first_file, spoiled(first_file, begin_of(first), end_of(first)));
  put(second_file, flipped(second_file, begin_of(second), 1));
  const RepairReport report = expect_repaired();
  ASSERT_THAT(report.mended, SizeIs(2));
  EXPECT_EQ(report.mended[0].by, MendedBy::copy);
  EXPECT_THAT(report.mended[0].how, HasSubstr("with 1 bit flipped back"));
  EXPECT_EQ(report.mended[1].by, MendedBy::flip);

  put(second_file, spoiled(second_file, begin_of(second), end_of(second)));
  const RepairReport refused = expect_refused();
  EXPECT_THAT(refused.lost, SizeIs(2));
  EXPECT_THAT(refused.lost.front().message, HasSubstr("no other copy has the recorded bytes"));
}

TEST_F(RepairTest, MendsOneBlockOfMany) {
  use(small_catalog({{{"large", DType::f32, Box{{0, 1000}, {0, 1500}}}, 1}}), 2);
  const auto [extent, file] = piece(0, 1);
  ASSERT_EQ(num_blocks(extent), 3);
  const std::size_t begin = begin_of(extent) + (1u << 20);
  put(file, spoiled(file, begin + 5, begin + 5000));
  const RepairReport report = expect_repaired();
  ASSERT_THAT(report.mended, SizeIs(1));
  EXPECT_EQ(report.mended.front().bytes, (ByteRange{static_cast<std::int64_t>(begin),
                                                    static_cast<std::int64_t>(begin) + (1 << 20)}));
}

TEST_F(RepairTest, TakesNothingFromAShardOfAnotherSave) {
  use_golden("copies");
  Catalog other = small_catalog({{{"w", DType::f32, Box{{0, 4}, {0, 2}}}, 0}});
  write_checkpoint(directory_ / "other", other);
  put(shard(1, 3), content_of(directory_ / "other" / shard(0, 4)));
  expect_repaired();
}

TEST_F(RepairTest, WritesCommitAgain) {
  use_golden("splits");  // without packaging: save id and headers bind all that the manifest says
  const std::string commit = original_.at("COMMIT");
  fs::remove(source_ / "COMMIT");
  EXPECT_EQ(expect_repaired().mended.front().by, MendedBy::record);
  for (const std::string& content :
       {std::string(), std::string("nonsense"), commit + commit, commit.substr(0, 20),
        std::string("crc64xz:0123456789abcdef 7\n"), std::string(5000, 'x')}) {
    SCOPED_TRACE(content.substr(0, 40));
    put("COMMIT", content);
    EXPECT_EQ(expect_repaired().mended.front().file, "COMMIT");
  }
}

TEST_F(RepairTest, CommitAndADamagedShardAtOnce) {
  use_golden("splits");
  fs::remove(source_ / "COMMIT");
  put(shard(0, 4), flipped(shard(0, 4), 70, 2));
  EXPECT_THAT(expect_repaired().mended, SizeIs(2));
}

TEST_F(RepairTest, TheCertificateVouchesForTheManifestWhereCommitIsLost) {
  use_golden("copies");
  fs::remove(source_ / "COMMIT");
  EXPECT_THAT(expect_repaired().notes, IsEmpty());
  put("manifest.json", flipped("manifest.json", 300, 16));
  EXPECT_THAT(expect_repaired().mended, SizeIs(2));
}

TEST_F(RepairTest, LeavesOutACertificateThatIsLost) {
  use_golden("copies");
  put("proof.json", spoiled("proof.json", 10, 60));
  original_.erase("proof.json");
  const RepairReport report = expect_repaired();
  ASSERT_THAT(report.mended, SizeIs(1));
  EXPECT_EQ(report.mended.front().by, MendedBy::cut);
  ASSERT_THAT(report.notes, SizeIs(1));
  EXPECT_EQ(report.notes.front().file, "proof.json");
}

TEST_F(RepairTest, NamesASideFileThatIsLost) {
  use_golden("copies");
  const std::string file = "side/config.json";
  put(file, spoiled(file, 0, 10));
  EXPECT_EQ(expect_refused().lost.front().file, file);
  put(file, original_.at(file).substr(1));
  EXPECT_EQ(expect_refused().lost.front().id, "RM202");
  fs::remove(source_ / file);
  EXPECT_EQ(expect_refused().lost.front().id, "RM203");
}

TEST_F(RepairTest, LeavesOutFilesThatNobodyLists) {
  use_golden("copies");
  put("notes.txt", "mine");
  put(shard(0, 3), flipped(shard(0, 3), 5, 1));
  const RepairReport report = expect_repaired();
  ASSERT_THAT(report.notes, SizeIs(1));
  EXPECT_EQ(report.notes.front().id, "RM108");
}

TEST_F(RepairTest, CarriesTheSignature) {
  use_golden("copies");
  put("manifest.json.minisig", "four lines");
  original_ = files_in(source_);
  put(shard(0, 3), flipped(shard(0, 3), 5, 1));
  EXPECT_THAT(expect_repaired().notes, IsEmpty());
}

TEST_F(RepairTest, RefusesADestinationThatExistsAndWhatIsNoCheckpoint) {
  use_golden("copies");
  fs::create_directory(target_);
  try {
    repair();
    FAIL() << "replaced a directory";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::exists);
  }
  fs::remove_all(source_);
  try {
    repair();
    FAIL() << "repaired nothing";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::not_found);
    EXPECT_EQ(error.id(), "RM101");
  }
}

TEST_F(RepairTest, ADryRunForetellsAllOfIt) {
  use_golden("copies");
  expect_foretold(repair_and_compare());  // nothing
  put("notes.txt", "mine");
  put(shard(1, 3), flipped(shard(1, 3), 5, 1));
  const RepairReport flip = repair();
  fs::remove_all(target_);
  EXPECT_THAT(flip.notes, SizeIs(1));
  expect_foretold(flip);
  fs::remove(source_ / "notes.txt");
  fs::remove(source_ / shard(0, 3));  // made again, in memory
  expect_foretold(expect_repaired());
  fs::remove(source_ / "manifest.json");
  expect_foretold(expect_refused());
  restore(shard(0, 3));
  restore("manifest.json");
  fs::remove(source_ / shard(0, 3));
  fs::remove(source_ / shard(1, 3));
  expect_foretold(expect_refused());
}

TEST_F(RepairTest, ADryRunNeedsNoDestinationButRefusesOneThatExists) {
  use_golden("copies");
  put(shard(1, 3), flipped(shard(1, 3), 5, 1));
  const RepairOptions options{.job_id = "0123456789abcdef", .dry_run = true};
  const SweepContext machine{pool_, budget_, progress_, stop_};
  EXPECT_THAT(repair_native(files_, source_, {}, options, machine).mended, SizeIs(1));
  fs::create_directory(target_);
  try {
    repair(/*dry_run=*/true);
    FAIL() << "promised to replace a directory";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::exists);
  }
}

TEST_F(RepairTest, RandomDamageIsMendedOrRefused) {
  constexpr unsigned seed = 20260718;
  SCOPED_TRACE("seed " + std::to_string(seed));
  use_golden("copies");
  std::mt19937 engine(seed);
  int repaired = 0;
  for (int count = 0; count < 300 && !HasFailure(); ++count) {
    for (int places = 1 + static_cast<int>(engine() % 3); places > 0; --places) {
      const std::string file = shard(static_cast<int>(engine() % 3), 3);
      std::string content = content_of(source_ / file);
      const std::size_t begin = engine() % content.size();
      const std::size_t end = std::min(content.size(), begin + engine() % 600);
      for (std::size_t at = begin; at < end; ++at) content[at] = static_cast<char>(engine());
      put(file, content);
    }
    const bool damaged = files_in(source_) != original_;
    SCOPED_TRACE("round " + std::to_string(count));
    repaired += repair_and_compare().written == damaged ? 1 : 0;
    for (int rank = 0; rank < 3; ++rank) restore(shard(rank, 3));
  }
  EXPECT_GT(repaired, 100);
}

}  // namespace
}  // namespace remesh::test
