#include "remesh/store/tally.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arbitrary.hpp"
#include "numbered_tensor.hpp"
#include "plain_tally.hpp"
#include "remesh/schema/pieces.hpp"

namespace remesh {
namespace {

constexpr std::int64_t block = ExtentMap::block_bytes;

// CRC-64/XZ from its definition, one bit after another.
Digest bitwise_crc(std::span<const std::byte> bytes) {
  std::uint64_t crc = ~std::uint64_t{0};
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint64_t>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 1) != 0 ? (crc >> 1) ^ 0xc96c5795d7870f42 : crc >> 1;
    }
  }
  return {~crc};
}

TEST(BitwiseCrc, HasTheCheckValueOfCrc64Xz) {
  const std::string text = "123456789";
  EXPECT_EQ(bitwise_crc(std::as_bytes(std::span(text))).value, 0x995dc9bbdf1939fa);
}

// Files with numbered tensors, and bytes between them that are nobody's.
struct World {
  std::vector<TensorDesc> tensors;
  ExtentMap extents;
  std::vector<std::vector<std::byte>> files;

  std::span<const std::byte> bytes(const Extent& extent) const {
    return std::span(files[extent.file])
        .subspan(static_cast<std::size_t>(extent.offset_bytes),
                 static_cast<std::size_t>(extent.length_bytes));
  }
  std::int64_t size_bytes() const {
    std::int64_t sum = 0;
    for (const auto& file : files) sum += std::ssize(file);
    return sum;
  }
};

// One box of a tensor, stored at the end of a file behind a gap.
Extent append(World& world, std::uint32_t tensor, std::uint32_t file, const Box& box,
              std::int64_t gap_bytes) {
  const std::vector<std::byte> bytes = test::numbered(world.tensors[tensor], box);
  std::vector<std::byte>& into = world.files[file];
  into.resize(into.size() + static_cast<std::size_t>(gap_bytes), std::byte{0xee});
  Extent extent;
  extent.tensor = tensor;
  extent.file = file;
  extent.offset_bytes = std::ssize(into);
  extent.length_bytes = std::ssize(bytes);
  extent.box = box;
  into.insert(into.end(), bytes.begin(), bytes.end());
  return extent;
}

// Any catalog over three files, each holder storing its copy.
World any_world(test::Arbitrary& arbitrary) {
  const Catalog catalog = arbitrary.catalog();
  struct Stored {
    std::uint32_t tensor;
    std::uint32_t copy;
    Box box;
  };
  std::vector<Stored> stored;
  const Pieces pieces(catalog.layout, catalog.tensors);
  for (std::uint32_t tensor = 0; tensor < catalog.tensors.size(); ++tensor) {
    for (const HeldBox& held : pieces.of(tensor)) {
      for (std::uint32_t copy = 0; copy < held.holders.size() && copy < 3; ++copy) {
        stored.push_back({tensor, copy, held.box});
      }
    }
  }
  arbitrary.shuffle(stored);

  World world{catalog.tensors, {}, std::vector<std::vector<std::byte>>(3)};
  std::vector<Extent> extents;
  for (const Stored& each : stored) {
    const Index gap = arbitrary.chance(50) ? 0 : arbitrary.between(1, 40);
    const auto file = static_cast<std::uint32_t>(arbitrary.between(0, 2));
    extents.push_back(append(world, each.tensor, file, each.box, gap));
    extents.back().copy = each.copy;
  }
  std::vector<ExtentMap::FileEntry> files;
  for (const auto& file : world.files) {
    files.push_back({"f" + std::to_string(files.size()), std::ssize(file)});
  }
  world.extents = ExtentMap(files, extents);
  return world;
}

// Columns [begin, end) of a tensor of `rows` rows of `columns` bytes.
World column_world(Index rows, Index columns, Index begin, Index end) {
  World world{{{"w", DType::u8, Box{{0, rows}, {0, columns}}}}, {}, {{}}};
  std::vector<Extent> extents;
  for (const Range range : {Range{0, begin}, Range{begin, end}, Range{end, columns}}) {
    extents.push_back(append(world, 0, 0, Box{{0, rows}, range}, 100));
  }
  world.extents = ExtentMap({{"f", std::ssize(world.files[0])}}, extents);
  return world;
}

struct Segment {
  std::uint32_t file = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// All bytes of all files, cut and ordered anyhow.
std::vector<Segment> any_cut(test::Arbitrary& arbitrary, const World& world, Index most_bytes) {
  std::vector<Segment> segments;
  for (std::uint32_t file = 0; file < world.files.size(); ++file) {
    const auto size = std::ssize(world.files[file]);
    for (std::int64_t at = 0; at < size;) {
      const std::int64_t end = std::min(size, at + arbitrary.between(1, most_bytes));
      segments.push_back({file, at, end});
      at = end;
    }
  }
  arbitrary.shuffle(segments);
  return segments;
}

template <typename AnyTally>
void add(AnyTally& tally, const World& world, const Segment& segment) {
  tally.add(segment.file, segment.begin,
            std::span(world.files[segment.file])
                .subspan(static_cast<std::size_t>(segment.begin),
                         static_cast<std::size_t>(segment.end - segment.begin)));
}

void add_by_threads(Tally& tally, const World& world, const std::vector<Segment>& segments,
                    std::size_t num_threads) {
  std::vector<std::thread> threads;
  for (std::size_t worker = 0; worker < num_threads; ++worker) {
    threads.emplace_back([&, worker] {
      for (std::size_t k = worker; k < segments.size(); k += num_threads) {
        add(tally, world, segments[k]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void expect_exact(const Tally& tally, const World& world) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, bool> stored;
  std::int64_t stored_bytes = 0;
  for (const Extent& extent : world.extents.extents()) {
    stored[{extent.tensor, extent.copy}] = true;
    stored_bytes += extent.length_bytes;
  }
  for (const auto& [which, yes] : stored) {
    const TensorDesc& desc = world.tensors[which.first];
    const Tally::Sum sum = tally.sum(which.first, which.second);
    if (which.second > 0 && sum.bytes < num_bytes(desc)) continue;  // not every box has as many
    ASSERT_EQ(sum.digest, bitwise_crc(test::numbered(desc))) << to_string(desc);
    ASSERT_EQ(sum.bytes, num_bytes(desc));
    ASSERT_TRUE(sum.complete) << to_string(desc);
  }
  ASSERT_EQ(tally.bytes(), world.size_bytes());
  ASSERT_EQ(tally.stray_bytes(), world.size_bytes() - stored_bytes);
}

void expect_blocks(const Tally& tally, const World& world) {
  const auto all = world.extents.extents();
  for (std::size_t extent = 0; extent < all.size(); ++extent) {
    std::span<const std::byte> left = world.bytes(all[extent]);
    for (std::int64_t k = 0; k < num_blocks(all[extent]); ++k) {
      const auto bytes = left.first(std::min(left.size(), static_cast<std::size_t>(block)));
      ASSERT_EQ(tally.block(extent, k), bitwise_crc(bytes)) << "block " << k << " of " << extent;
      left = left.subspan(bytes.size());
    }
  }
}

TEST(Tally, OfAnyCutInAnyOrderByAnyThreadsIsTheDigestOfTheLogicalBytes) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Arbitrary arbitrary(seed);
    const World world = any_world(arbitrary);
    const auto segments = any_cut(arbitrary, world, arbitrary.pick(std::vector<Index>{7, 60, 900}));
    const bool with_blocks = arbitrary.chance(50);

    Tally tally(world.tensors, world.extents, with_blocks);
    add_by_threads(tally, world, segments, static_cast<std::size_t>(arbitrary.between(1, 3)));
    expect_exact(tally, world);
    if (with_blocks) expect_blocks(tally, world);
    if (HasFatalFailure()) return;
  }
}

// Rows of 1511, 1000 and 489 bytes: the first extent has two blocks.
TEST(Tally, HashesBlocksWhoseBordersFallInTheMiddleOfARow) {
  const World world = column_world(720, 3000, 1511, 2511);
  for (unsigned seed = 0; seed < 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Arbitrary arbitrary(seed);
    const auto segments =
        any_cut(arbitrary, world,
                arbitrary.pick(std::vector<Index>{5'000, 300'000, 2 * block, 99 * block}));
    Tally tally(world.tensors, world.extents, /*with_blocks=*/true);
    add_by_threads(tally, world, segments, 2);
    expect_exact(tally, world);
    expect_blocks(tally, world);
  }
}

TEST(Tally, AgreesWithThePlainForm) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Arbitrary arbitrary(seed);
    const Index rows = arbitrary.between(1, 40);
    const Index columns = arbitrary.between(2, 200);
    const Index begin = arbitrary.between(0, columns - 1);
    const World world = column_world(rows, columns, begin, arbitrary.between(begin, columns));

    std::vector<Segment> segments = any_cut(arbitrary, world, 500);
    segments.resize(static_cast<std::size_t>(arbitrary.between(0, std::ssize(segments))));
    Tally fast(world.tensors, world.extents, /*with_blocks=*/true);
    test::PlainTally plain(world.tensors, world.extents);
    for (const Segment& segment : segments) {
      add(fast, world, segment);
      add(plain, world, segment);
    }
    ASSERT_EQ(fast.sum(0).digest, plain.digest(0));
    ASSERT_EQ(fast.sum(0).complete, plain.complete(0));
    for (std::size_t extent = 0; extent < world.extents.extents().size(); ++extent) {
      if (world.extents.extents()[extent].length_bytes == 0) continue;
      ASSERT_EQ(fast.block(extent, 0), plain.block(extent, 0));
    }
  }
}

// A byte of the source that goes to the wrong place: the bytes are right, the file offset is not.
TEST(Tally, PlacesBytesByTheirFileOffsetAndByNothingElse) {
  const World world = column_world(4, 30, 10, 20);
  const Extent& first = world.extents.extents()[0];
  World swapped = world;
  const auto row = swapped.files[0].begin() + first.offset_bytes;
  std::swap_ranges(row, row + 10, row + 10);

  Tally tally(world.tensors, world.extents, /*with_blocks=*/false);
  add(tally, swapped, {0, 0, world.size_bytes()});
  EXPECT_TRUE(tally.sum(0).complete) << "every element passed once";
  EXPECT_NE(tally.sum(0).digest, bitwise_crc(test::numbered(world.tensors[0])));
}

class TallyCoverage : public ::testing::Test {
 protected:
  // Rows of 24 columns, of which the middle extent has 8 a row: 64 rows of 8 bytes.
  const World world_ = column_world(64, 24, 8, 16);
  const Extent& middle_ = world_.extents.extents()[1];

  Tally tally_{world_.tensors, world_.extents, /*with_blocks=*/false};

  // Bytes [begin, end) of the middle extent.
  void again(std::int64_t begin, std::int64_t end) {
    add(tally_, world_, {0, middle_.offset_bytes + begin, middle_.offset_bytes + end});
  }
  void everything_but(std::int64_t begin, std::int64_t end) {
    add(tally_, world_, {0, 0, middle_.offset_bytes + begin});
    add(tally_, world_, {0, middle_.offset_bytes + end, world_.size_bytes()});
  }
};

TEST_F(TallyCoverage, IsCompleteWithoutAHole) {
  everything_but(0, 0);
  EXPECT_TRUE(tally_.sum(0).complete);
}

TEST_F(TallyCoverage, SeesAHole) {
  everything_but(100, 101);
  EXPECT_FALSE(tally_.sum(0).complete);
  EXPECT_EQ(tally_.sum(0).bytes, 64 * 24 - 1);
}

TEST_F(TallyCoverage, SeesAByteThatPassedTwice) {
  everything_but(0, 0);
  again(100, 101);
  EXPECT_FALSE(tally_.sum(0).complete);
}

TEST_F(TallyCoverage, SeesAByteThatPassedThreeTimes) {
  everything_but(0, 0);
  again(100, 101);
  again(100, 101);
  EXPECT_FALSE(tally_.sum(0).complete) << "the digest is right, so only the count can tell";
  EXPECT_EQ(tally_.sum(0).digest, bitwise_crc(test::numbered(world_.tensors[0])));
}

TEST_F(TallyCoverage, SeesAHoleAndADoubleOfOneSize) {
  everything_but(100, 140);
  again(200, 240);
  EXPECT_EQ(tally_.sum(0).bytes, 64 * 24) << "the count is right, so only the cover can tell";
  EXPECT_FALSE(tally_.sum(0).complete);
}

TEST_F(TallyCoverage, SeesAHoleThatATripleFillsUp) {
  everything_but(100, 140);
  again(200, 220);
  again(200, 220);
  EXPECT_EQ(tally_.sum(0).bytes, 64 * 24);
  EXPECT_FALSE(tally_.sum(0).complete);
}

TEST_F(TallyCoverage, OfOneRowTwiceInsteadOfTwoRowsIsNotComplete) {
  everything_but(8, 16);
  again(0, 8);
  EXPECT_FALSE(tally_.sum(0).complete);
}

TEST(Tally, OfATensorWithoutElementsIsCompleteAndZero) {
  const std::vector<TensorDesc> tensors{{"w", DType::f32, Box{{0, 0}, {0, 3}}}};
  Extent extent;
  extent.box = tensors[0].extent;
  const ExtentMap map({{"f", 0}}, {extent});
  const Tally tally(tensors, map, /*with_blocks=*/true);
  EXPECT_EQ(tally.sum(0), (Tally::Sum{Digest{0}, 0, true}));
}

TEST(Tally, KnowsNothingOfACopyThatIsNotStored) {
  const World world = column_world(2, 6, 2, 4);
  Tally tally(world.tensors, world.extents, /*with_blocks=*/false);
  add(tally, world, {0, 0, world.size_bytes()});
  EXPECT_TRUE(tally.sum(0, 0).complete);
  EXPECT_EQ(tally.sum(0, 1).bytes, 0);
  EXPECT_FALSE(tally.sum(0, 1).complete);
}

TEST(Tally, CountsBytesOfNoExtentAsStray) {
  const World world = column_world(2, 6, 2, 4);
  Tally tally(world.tensors, world.extents, /*with_blocks=*/true);
  add(tally, world, {0, 0, 100});
  EXPECT_EQ(tally.stray_bytes(), 100);
  EXPECT_EQ(tally.sum(0).bytes, 0);
  tally.add(7, 0, std::span(world.files[0]).first(30));
  EXPECT_EQ(tally.stray_bytes(), 130) << "in a file that the map does not know";
  tally.add(0, 0, {});
  EXPECT_EQ(tally.bytes(), 130);
}

}  // namespace
}  // namespace remesh
