#include "remesh/execute/peak.hpp"

#include <gtest/gtest.h>

namespace remesh {
namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20;
constexpr std::int64_t gib = std::int64_t{1} << 30;

// So many tensors of that many bytes, in a checkpoint of one rank.
Catalog catalog_of(std::int64_t tensors, std::int64_t bytes) {
  Catalog catalog;
  catalog.format = "remesh";
  for (std::int64_t i = 0; i < tensors; ++i) {
    catalog.tensors.push_back({"layers." + std::to_string(i), DType::u8, Box{{0, bytes}}});
  }
  return catalog;
}

PeakMemory of(const Catalog& catalog, std::int64_t limit, int workers = 2) {
  return peak_memory(catalog, ExtentMap(), catalog, {}, workers, limit);
}

// A TiB has 2^19 panels of 2 MiB, of more than 100 bytes each, and 2^20 block CRCs.
TEST(PeakMemory, GrowsWithWhatIsMoved) {
  const std::int64_t small = of(catalog_of(1000, 100 * mib), gib).peak_bytes;
  const std::int64_t large = of(catalog_of(1000, gib), gib).peak_bytes;
  EXPECT_GT(large, small + 100 * mib);
  EXPECT_LT(large, small + 400 * mib);
}

// Smaller panels are more.
TEST(PeakMemory, ALargeCheckpointNeedsMoreThanTheLeast) {
  EXPECT_LE(of(catalog_of(100, gib), 64 * mib).least_bytes, 64 * mib);
  EXPECT_GT(of(catalog_of(2000, gib), 64 * mib).least_bytes, 64 * mib);
}

// With what is called the least a job fits, and with a MiB less it does not.
TEST(PeakMemory, TheLeastIsEnoughAndNoLessIs) {
  for (const auto& catalog :
       {catalog_of(1, 10), catalog_of(10, gib), catalog_of(20'000, 8), catalog_of(2000, gib)}) {
    for (const int workers : {1, 2, 16, 200}) {
      const std::int64_t least = of(catalog, gib, workers).least_bytes;
      EXPECT_LE(of(catalog, least, workers).peak_bytes, least);
      if (least > 4 * 2 * workers * 64 * 1024) {
        EXPECT_GT(of(catalog, least - mib, workers).peak_bytes, least - mib);
      }
      EXPECT_EQ(of(catalog, 64 * mib, workers).least_bytes, least) << "it does not depend";
    }
  }
}

TEST(PeakMemory, ASideFileIsHeldWhole) {
  Catalog catalog = catalog_of(1, 10);
  const std::int64_t without = of(catalog, gib).peak_bytes;
  catalog.side.push_back({"trainer_state.json", 50 * mib, {}});
  EXPECT_EQ(of(catalog, gib).peak_bytes, without + 50 * mib);
}

}  // namespace
}  // namespace remesh
