#include <cstring>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "repair_fixture.hpp"
#include "seeds.hpp"

// Shards that were written with --compress: their metadata names each frame, so that it cannot be
// made again without knowing how long each was.

namespace remesh::test {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RepairPackedTest : public RepairTest {
 protected:
  // Frames of both kinds, several to an extent, some beyond 64 KiB; and payload without frames.
  static Catalog mixed() {
    return small_catalog({{{"packs", DType::boolean, Box{{0, 2050}, {0, 2048}}}, 1},
                          {{"noise", DType::u8, Box{{0, 3}, {0, 400'001}}}, 0},
                          {{"small", DType::i32, Box{{0, 64}, {0, 64}}}, 2},
                          {{"scales", DType::f32, Box{{0, 7}}}, 0}});
  }
  // Where the index of a shard lies.
  static ByteRange index_of(const std::string& content) {
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
    std::memcpy(&offset, content.data() + 24, sizeof offset);
    std::memcpy(&bytes, content.data() + 32, sizeof bytes);
    return {offset, offset + bytes};
  }
};

TEST_F(RepairPackedTest, AMissingShardIsMadeFromTheCopies) {
  use(mixed(), 2, 1);
  int shards = 0;
  for (const auto& [file, content] : original_) {
    if (!file.starts_with("shard-")) continue;
    SCOPED_TRACE(file);
    ++shards;
    fs::remove(source_ / file);
    const RepairReport report = expect_repaired();
    EXPECT_THAT(report.mended, Each(Field(&Mend::file, file)));
    EXPECT_THAT(report.mended, Contains(Field(&Mend::by, MendedBy::rule)));
    EXPECT_THAT(report.mended, Contains(Field(&Mend::by, MendedBy::copy)));
    expect_foretold(report);
    restore(file);
  }
  EXPECT_EQ(shards, 4);
}

// Any level: frames are taken as they are, not made again.
TEST_F(RepairPackedTest, TheLevelDoesNotMatter) {
  for (const int level : {1, 9, 19}) {
    use(small_catalog({{{"packs", DType::boolean, Box{{0, 64}, {0, 2048}}}, 0}}), 2, level);
    const auto [extent, file] = piece(0);
    fs::remove(source_ / file);
    expect_repaired();
    fs::remove_all(source_);
  }
}

TEST_F(RepairPackedTest, ACutShardIsMadeWhole) {
  use(mixed(), 2, 1);
  const auto [extent, file] = piece(0);
  const std::string& whole = original_.at(file);
  for (std::size_t length = 0; length < whole.size() && !HasFailure(); length += 70'001) {
    SCOPED_TRACE("cut to " + std::to_string(length));
    put(file, whole.substr(0, length));
    expect_repaired();
  }
}

// The index lies where the rules put it, and says how long the frames are.
TEST_F(RepairPackedTest, HeaderAndMetadataAreMadeAgainWithoutAnyCopy) {
  use(mixed(), 1, 1);
  const auto [extent, file] = piece(0);
  const auto index = static_cast<std::size_t>(index_of(original_.at(file)).begin);
  for (const auto& [begin, end] :
       {std::pair<std::size_t, std::size_t>{0, 4096}, {4096, 4500}, {64, 80}, {100, index - 100}}) {
    SCOPED_TRACE("bytes " + std::to_string(begin) + " to " + std::to_string(end));
    put(file, spoiled(file, begin, end));
    const RepairReport report = expect_repaired();
    ASSERT_THAT(report.mended, SizeIs(1));
    EXPECT_EQ(report.mended.front().by, MendedBy::rule);
  }
}

TEST_F(RepairPackedTest, ALostIndexNeedsACopy) {
  for (const std::int64_t copies : {2, 1}) {
    use(mixed(), copies, 1);
    const auto [extent, file] = piece(0);
    const ByteRange index = index_of(original_.at(file));
    put(file,
        spoiled(file, static_cast<std::size_t>(index.begin), static_cast<std::size_t>(index.end)));
    if (copies == 2) {
      expect_repaired();
    } else {
      const RepairReport report = expect_refused();
      EXPECT_THAT(report.lost, Contains(Field(&Finding::tensor, "packs")));
      EXPECT_THAT(report.lost.front().message, HasSubstr("stored nowhere else"));
    }
    fs::remove_all(source_);
  }
}

// Nothing vouches for such an index but the header that comes of it: the copy is the original, or
// there is none.
TEST_F(RepairPackedTest, AChangedIndexUnderALostHeaderIsNotBelieved) {
  use(mixed(), 1, 1);
  const auto [extent, file] = piece(0);
  std::string damaged = spoiled(file, 0, 4096);
  const ByteRange index = index_of(original_.at(file));
  int refused = 0;
  for (std::int64_t at = index.begin; at < index.end && !HasFailure(); at += 37) {
    SCOPED_TRACE("byte " + std::to_string(at));
    std::string one = damaged;
    one[static_cast<std::size_t>(at)] ^= 4;
    put(file, one);
    refused += repair_and_compare().written ? 0 : 1;
  }
  EXPECT_GT(refused, 5);
}

TEST_F(RepairPackedTest, AFrameComesFromTheOtherCopy) {
  use(mixed(), 2, 1);
  const auto [extent, file] = piece(0);
  const std::size_t at = begin_of(extent);
  put(file, spoiled(file, at + 10, at + 60));
  const RepairReport report = expect_repaired();
  ASSERT_THAT(report.mended, SizeIs(1));
  EXPECT_EQ(report.mended.front().by, MendedBy::copy);
  EXPECT_EQ(report.mended.front().tensor, "packs");
}

// Every byte with `./dev soak`, since each repair costs a millisecond.
TEST_F(RepairPackedTest, UndoesAFlippedBitInEveryByte) {
  use_golden("compressed");
  const std::size_t stride = num_seeds(1) > 1 ? 1 : 41;
  for (const auto& [file, content] : original_) {
    for (std::size_t at = 0; at < content.size() && !HasFailure(); at += stride) {
      SCOPED_TRACE("byte " + std::to_string(at) + " of " + file);
      put(file, flipped(file, at, 1 << at % 8));
      const RepairReport report = expect_repaired();
      EXPECT_THAT(report.mended, Each(Field(&Mend::file, file)));
      EXPECT_THAT(report.notes, IsEmpty());
    }
    restore(file);
  }
}

}  // namespace
}  // namespace remesh::test
