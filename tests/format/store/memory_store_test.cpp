#include "remesh/store/memory_store.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../contract/reader_contract.hpp"
#include "../../contract/writer_contract.hpp"
#include "arbitrary.hpp"
#include "numbered_tensor.hpp"
#include "remesh/core/error.hpp"
#include "write_numbered.hpp"

namespace remesh {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// A split weight on both dp replicas, a bias on the first pp stage, and nothing of either on the
// last rank's stage but the weight. Ranks sit at (tp, dp).
Catalog small_catalog() {
  Split over_tp;
  over_tp.over = {"tp"};
  Catalog catalog;
  catalog.tensors = {{"w", DType::bf16, Box{{0, 4}, {0, 2}}},
                     {"none", DType::f32, Box{{0, 0}}},
                     {"bias", DType::f32, Box{{0, 3}}}};
  const Pin to_tp0{"tp", PinTo::coordinates, {0}};
  catalog.layout = Layout(Mesh({{"tp", 2}, {"dp", 2}, {"pp", 1}}),
                          {{{over_tp}, {}}, {{}, {to_tp0}}}, {{0, -1}, {1, -1}, {1, -1}}, {});
  return catalog;
}

TEST(MemoryStore, HasOneFileForEachRankAlsoForOneThatHoldsNothing) {
  Catalog catalog = small_catalog();
  catalog.tensors.erase(catalog.tensors.begin());
  catalog.layout =
      Layout(Mesh({{"tp", 2}}), {catalog.layout.placements()[1]}, {{0, -1}, {0, -1}}, {});
  MemoryStore store(catalog);
  EXPECT_THAT(store.extents().files(),
              ElementsAre(ExtentMap::FileEntry{"rank-0", 12}, ExtentMap::FileEntry{"rank-1", 0}));
  EXPECT_EQ(store.bytes(0).size(), 12U);
  EXPECT_EQ(store.bytes(1).size(), 0U);
}

TEST(MemoryStore, LaysTheTensorsOfEachRankBackToBack) {
  const MemoryStore store(small_catalog());
  struct Row {
    Rank rank;
    std::uint32_t tensor, copy;
    std::int64_t offset, length;
    Box box;
  };
  // clang-format off
  const std::vector<Row> rows{
      {0, 0, 0, 0,  8, Box{{0, 2}, {0, 2}}},
      {0, 1, 0, 0,  0, Box{{0, 0}}},
      {0, 2, 0, 8, 12, Box{{0, 3}}},
      {1, 0, 0, 0,  8, Box{{2, 4}, {0, 2}}},
      {2, 0, 1, 0,  8, Box{{0, 2}, {0, 2}}},
      {2, 1, 1, 0,  0, Box{{0, 0}}},
      {2, 2, 1, 8, 12, Box{{0, 3}}},
      {3, 0, 1, 0,  8, Box{{2, 4}, {0, 2}}},
  };
  // clang-format on
  const auto all = store.extents().extents();
  ASSERT_EQ(all.size(), rows.size());
  for (std::size_t k = 0; k < rows.size(); ++k) {
    SCOPED_TRACE(k);
    EXPECT_EQ(all[k].file, rows[k].rank);
    EXPECT_EQ(all[k].rank, rows[k].rank);
    EXPECT_EQ(all[k].tensor, rows[k].tensor);
    EXPECT_EQ(all[k].copy, rows[k].copy);
    EXPECT_EQ(all[k].offset_bytes, rows[k].offset);
    EXPECT_EQ(all[k].length_bytes, rows[k].length);
    EXPECT_EQ(all[k].box, rows[k].box);
    EXPECT_EQ(all[k].first_block, -1);
  }
  EXPECT_EQ(store.extents().copies(), 2U);
}

TEST(MemoryStore, StartsWithZeros) {
  MemoryStore store(small_catalog());
  for (Rank rank = 0; rank < 4; ++rank) EXPECT_THAT(store.bytes(rank), Each(std::byte{0}));
}

TEST(MemoryStore, WritesEachHoldersCopy) {
  MemoryStore store(small_catalog());
  const std::vector<std::byte> row(4, std::byte{0x5a});
  std::vector<std::pair<std::uint32_t, std::int64_t>> heard;
  store.writer()->write(0, Box{{3, 4}, {0, 2}}, row, [&](auto file, auto offset, auto bytes) {
    heard.emplace_back(file, offset);
    EXPECT_TRUE(std::ranges::equal(bytes, row));
  });
  EXPECT_THAT(heard, ElementsAre(std::pair(1U, 4), std::pair(3U, 4)));
  for (const Rank rank : {1, 3}) {
    EXPECT_THAT(store.bytes(rank).first(4), Each(std::byte{0}));
    EXPECT_THAT(store.bytes(rank).subspan(4, 4), Each(std::byte{0x5a}));
  }
  for (const Rank rank : {0, 2}) EXPECT_THAT(store.bytes(rank), Each(std::byte{0}));
}

TEST(MemoryStore, KeepsWhatItIsSealedWith) {
  MemoryStore store(small_catalog());
  test::Arbitrary arbitrary(1);
  const auto writer = store.writer();
  test::write_and_seal_numbered(*writer, arbitrary);
  EXPECT_TRUE(writer->publish());
  const test::Seals seals = test::seals_of(store.catalog(), store.extents());
  EXPECT_EQ(store.catalog().digests, seals.digests);
  EXPECT_EQ(store.reader()->catalog().digests, seals.digests);
  EXPECT_THAT(store.extents().blocks(store.extents().extents()[2]),
              ElementsAre(digest_of(test::numbered(store.catalog().tensors[2]))));
}

TEST(MemoryStore, KeepsNoSideFiles) {
  Catalog catalog = small_catalog();
  catalog.side = {{"config.json", 3, {}}};
  const MemoryStore store(catalog);
  try {
    store.reader()->side(catalog.side[0]);
    FAIL() << "made a side file up";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::not_found);
    EXPECT_STREQ(error.what(), "cannot read side file 'config.json': a store in memory keeps none");
  }
}

TEST(MemoryStore, RefusesALayoutThatCutsAByte) {
  Split over_tp;
  over_tp.over = {"tp"};
  Catalog catalog;
  catalog.tensors = {{"w", DType::f4, Box{{0, 6}}}};
  catalog.layout = Layout(Mesh({{"tp", 2}}), {{{over_tp}, {}}}, {{0, -1}}, {});
  EXPECT_THROW(MemoryStore{catalog}, Error);
}

void expect_misplaced(const Box& box, const std::string& message) {
  MemoryStore store(small_catalog());
  const std::vector<std::byte> bytes(static_cast<std::size_t>(num_bytes(DType::bf16, box)));
  try {
    store.writer()->write(0, box, bytes, {});
    FAIL() << "wrote " << to_string(box);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::internal);
    EXPECT_EQ(error.what(), message);
  }
}

TEST(PlacesOf, ABoxThatNoPieceContainsAreNone) {
  expect_misplaced(Box{{1, 3}, {0, 2}},
                   "cannot write [1, 3) x [0, 2) of 'w' (bf16, [0, 4) x [0, 2)): no piece contains "
                   "it; this is a bug in remesh");
}

TEST(PlacesOf, ABoxWhoseElementsLieApartAreNone) {
  expect_misplaced(Box{{0, 2}, {0, 1}},
                   "cannot write [0, 2) x [0, 1) of 'w' (bf16, [0, 4) x [0, 2)): its elements do "
                   "not lie together in their piece; this is a bug in remesh");
}

TEST(PlacesOf, ABoxWithoutElementsAreNone) {
  MemoryStore store(small_catalog());
  store.writer()->write(0, Box{{0, 0}, {0, 2}}, {}, {});
  EXPECT_TRUE(
      places_of(store.extents(), 0, store.catalog().tensors[0], Box{{4, 4}, {0, 2}}).empty());
}

test::NumberedCheckpoint numbered_in_memory(test::Arbitrary& arbitrary) {
  auto store = std::make_shared<MemoryStore>(arbitrary.catalog());
  test::write_and_seal_numbered(*store->writer(), arbitrary);
  return {store, store->reader()};
}

test::StoreCase memory_store() {
  auto store = std::make_shared<std::unique_ptr<MemoryStore>>();
  return {[](test::Arbitrary& arbitrary) { return arbitrary.catalog(); },
          [store](const Catalog& catalog) {
            *store = std::make_unique<MemoryStore>(catalog);
            return (*store)->writer();
          },
          [store] { return (*store)->reader(); }};
}

}  // namespace

namespace test {

INSTANTIATE_TEST_SUITE_P(Memory, ReaderContract, ::testing::Values(&numbered_in_memory));
INSTANTIATE_TEST_SUITE_P(Memory, WriterContract, ::testing::Values(&memory_store));

}  // namespace test
}  // namespace remesh
