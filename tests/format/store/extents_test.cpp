#include "remesh/store/extents.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arbitrary.hpp"

namespace remesh {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t block = ExtentMap::block_bytes;

Extent extent(std::uint32_t tensor, std::uint32_t file, std::int64_t offset, std::int64_t length,
              const Box& box, std::uint32_t copy = 0) {
  Extent made;
  made.tensor = tensor;
  made.file = file;
  made.copy = copy;
  made.offset_bytes = offset;
  made.length_bytes = length;
  made.box = box;
  return made;
}

// Two tensors over two files: the first one cut in two and stored twice, the second one empty.
ExtentMap small_map() {
  return {{{"a.bin", 200}, {"b.bin", 200}},
          {extent(0, 1, 64, 8, Box{{4, 8}}, 1), extent(0, 1, 100, 8, Box{{4, 8}}, 0),
           extent(1, 0, 0, 0, Box{{0, 0}}), extent(0, 0, 72, 8, Box{{0, 4}}, 1),
           extent(0, 0, 64, 8, Box{{0, 4}}, 0)}};
}

TEST(ExtentMap, IsSortedByFileAndOffset) {
  std::vector<std::int64_t> offsets;
  const ExtentMap map = small_map();
  for (const Extent& each : map.extents()) offsets.push_back(1000 * each.file + each.offset_bytes);
  EXPECT_THAT(offsets, ElementsAre(0, 64, 72, 1064, 1100));
}

TEST(ExtentMap, ListsTheExtentsOfATensorByCopyAndBox) {
  const ExtentMap map = small_map();
  EXPECT_THAT(map.of(0), ElementsAre(1, 4, 2, 3));
  EXPECT_THAT(map.of(1), ElementsAre(0));
  EXPECT_THAT(map.of(2), IsEmpty()) << "a tensor without extents";
  EXPECT_EQ(map.copies(), 2U);
}

TEST(ExtentMap, ListsNothingOfATensorBetweenOthers) {
  const ExtentMap map({{"f", 9}},
                      {extent(3, 0, 0, 4, Box{{0, 4}}), extent(1, 0, 4, 4, Box{{0, 4}})});
  EXPECT_THAT(map.of(0), IsEmpty());
  EXPECT_THAT(map.of(1), ElementsAre(1));
  EXPECT_THAT(map.of(2), IsEmpty());
  EXPECT_THAT(map.of(3), ElementsAre(0));
  EXPECT_THAT(map.of(4), IsEmpty());
}

TEST(ExtentMap, OfNothingHasOneCopyAndNoPlaces) {
  const ExtentMap map;
  EXPECT_EQ(map.copies(), 1U);
  EXPECT_THAT(map.of(0), IsEmpty());
  EXPECT_EQ(map.at(0, 0), nullptr);
  EXPECT_EQ(ExtentMap({{"f", 3}}, {}).at(0, 0), nullptr);
}

TEST(ExtentMap, FindsWhoHoldsAByte) {
  const ExtentMap map = small_map();
  const auto all = map.extents();
  struct Row {
    std::uint32_t file;
    std::int64_t offset;
    const Extent* holder;
  };
  // clang-format off
  const Row rows[] = {
      {0,   0, nullptr}, {0,  63, nullptr},
      {0,  64, &all[1]}, {0,  71, &all[1]},
      {0,  72, &all[2]}, {0,  79, &all[2]},
      {0,  80, nullptr}, {0, 199, nullptr},
      {1,   0, nullptr}, {1,  64, &all[3]},
      {1,  72, nullptr}, {1, 107, &all[4]},
      {1, 108, nullptr}, {2,   0, nullptr},
  };
  // clang-format on
  for (const Row& row : rows) {
    EXPECT_EQ(map.at(row.file, row.offset), row.holder) << row.file << " at " << row.offset;
  }
}

TEST(ExtentMap, NeverFindsAnEmptyExtent) {
  const ExtentMap map({{"f", 16}},
                      {extent(0, 0, 8, 0, Box{{0, 0}}), extent(1, 0, 8, 8, Box{{0, 8}}),
                       extent(2, 0, 8, 0, Box{{0, 0}}), extent(3, 0, 12, 0, Box{{0, 0}})});
  ASSERT_NE(map.at(0, 8), nullptr);
  EXPECT_EQ(map.at(0, 8)->tensor, 1U);
  ASSERT_NE(map.at(0, 15), nullptr) << "an empty extent lies in between";
  EXPECT_EQ(map.at(0, 15)->tensor, 1U);
}

TEST(ExtentMap, FindsWhatALinearSearchFinds) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Arbitrary arbitrary(seed);
    std::vector<Extent> extents;
    for (std::uint32_t file = 0; file < 3; ++file) {
      std::int64_t end = 0;
      for (Index k = arbitrary.between(0, 6); k > 0; --k) {
        const Index length = arbitrary.between(0, 4);
        end += arbitrary.between(0, 3);
        extents.push_back(extent(static_cast<std::uint32_t>(arbitrary.between(0, 9)), file, end,
                                 length, Box{{0, length}}));
        end += length;
      }
    }
    arbitrary.shuffle(extents);
    const ExtentMap map({{"a", 99}, {"b", 99}, {"c", 99}}, extents);
    for (std::uint32_t file = 0; file < 4; ++file) {
      for (std::int64_t offset = 0; offset < 50; ++offset) {
        std::optional<Extent> expected;
        for (const Extent& each : extents) {
          const std::int64_t within = offset - each.offset_bytes;
          if (each.file == file && within >= 0 && within < each.length_bytes) expected = each;
        }
        const Extent* found = map.at(file, offset);
        ASSERT_EQ(found != nullptr, expected.has_value()) << file << " at " << offset;
        if (found != nullptr) {
          ASSERT_EQ(*found, *expected);
        }
      }
    }
  }
}

TEST(ExtentMap, GivesEachExtentItsBlocks) {
  Extent long_one = extent(0, 0, 0, 2 * block + 1, Box{{0, 2 * block + 1}});
  long_one.first_block = 1;
  Extent short_one = extent(1, 1, 0, 5, Box{{0, 5}});
  short_one.first_block = 0;
  const Extent unrecorded = extent(2, 1, 5, 5, Box{{0, 5}});
  const ExtentMap map({{"a", 3 * block}, {"b", 10}}, {unrecorded, short_one, long_one},
                      {{10}, {20}, {21}, {22}});
  EXPECT_THAT(map.blocks(map.extents()[0]), ElementsAre(Digest{20}, Digest{21}, Digest{22}));
  EXPECT_THAT(map.blocks(map.extents()[1]), ElementsAre(Digest{10}));
  EXPECT_THAT(map.blocks(map.extents()[2]), IsEmpty());
}

TEST(NumBlocks, RoundsUp) {
  EXPECT_EQ(num_blocks(0), 0);
  EXPECT_EQ(num_blocks(1), 1);
  EXPECT_EQ(num_blocks(block), 1);
  EXPECT_EQ(num_blocks(block + 1), 2);
  EXPECT_EQ(num_blocks(INT64_MAX), INT64_MAX / block + 1);
}

TEST(SamePlaces, DoNotDependOnCrcsGuardsSizesOrFilesWithoutElements) {
  std::vector<Extent> extents{extent(0, 0, 64, 8, Box{{0, 4}})};
  const ExtentMap plain({{"a", 100}}, extents);
  extents[0].first_block = 0;
  EXPECT_TRUE(
      plain.same_places(ExtentMap({{"a", 120}}, extents, {{7}}, {{0, {{0, 8}}, {9}, "x"}})));
  extents[0].file = 1;
  EXPECT_TRUE(plain.same_places(ExtentMap({{"manifest", 5}, {"a", 100}}, extents)))
      << "the same file, numbered otherwise";
}

TEST(SamePlaces, DifferWhereAnythingElseDoes) {
  const Extent one = extent(0, 0, 64, 8, Box{{0, 4}});
  const std::vector<ExtentMap::FileEntry> files{{"a", 100}, {"b", 100}};
  const ExtentMap map(files, {one});
  const auto same = [&](const Extent& other) { return map.same_places(ExtentMap(files, {other})); };
  ASSERT_TRUE(same(one));

  Extent other = one;
  other.file = 1;
  EXPECT_FALSE(same(other));
  other = one;
  other.offset_bytes = 65;
  EXPECT_FALSE(same(other));
  other = one;
  other.length_bytes = 7;
  EXPECT_FALSE(same(other));
  other = one;
  other.box = Box{{4, 8}};
  EXPECT_FALSE(same(other));
  other = one;
  other.tensor = 1;
  EXPECT_FALSE(same(other));
  other = one;
  other.copy = 1;
  EXPECT_FALSE(same(other));
  other = one;
  other.rank = 3;
  EXPECT_FALSE(same(other));
  EXPECT_FALSE(map.same_places(ExtentMap(files, {})));
  EXPECT_FALSE(ExtentMap(files, {}).same_places(map));
}

}  // namespace
}  // namespace remesh
