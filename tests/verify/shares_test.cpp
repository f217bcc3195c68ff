#include "shares.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job.hpp"
#include "remesh/core/error.hpp"
#include "remesh/verify/verify.hpp"
#include "temporary_directory.hpp"

namespace remesh {
namespace {

namespace fs = std::filesystem;
using detail::Block;
using detail::Share;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

const fs::path fixture = fs::path(REMESH_SOURCE_DIR) / "fixtures/llama-gqa";

void flip(const fs::path& file, std::int64_t offset) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(offset);
  const int byte = stream.get();
  stream.seekp(offset);
  stream.put(static_cast<char>(byte ^ 0x01));
}

class Subsets : public ::testing::Test {
 protected:
  Subsets() {
    test::run_job(machine_, fixture, plain_, {.mesh = "tp=2,pp=2"});
    test::run_job(
        machine_, fixture, packed_,
        {.mesh = "tp=2,pp=2", .writer = {.compress_level = 1, .job_id = "0123456789abcdef"}});
  }

  Report part(const fs::path& path, std::int64_t number, std::int64_t count,
              Level level = Level::full) {
    return verify(machine_.judge(), test::opener(path), level, Subset{number, count});
  }

  test::Machine machine_;
  test::TemporaryDirectory directory_;
  const fs::path plain_ = directory_ / "plain";
  const fs::path packed_ = directory_ / "packed";
};

TEST_F(Subsets, TogetherReadEveryByteOnce) {
  for (const fs::path& path : {fixture, plain_, packed_}) {
    const Report full = verify(machine_.judge(), test::opener(path), Level::full);
    for (const std::int64_t count : {1, 2, 3, 7, 1000}) {
      std::int64_t bytes = 0;
      for (std::int64_t number = 1; number <= count; ++number) {
        const Report report = part(path, number, count);
        EXPECT_THAT(report.findings, IsEmpty());
        EXPECT_FALSE(report.recomputed);
        EXPECT_EQ(report.subset, (Subset{number, count}));
        bytes += report.bytes_read;
      }
      EXPECT_EQ(bytes, full.bytes_read) << path << " in " << count;
    }
  }
}

TEST_F(Subsets, EachBlockAndGuardIsInOnePartAndPartsAreEven) {
  for (const fs::path& path : {fixture, plain_, packed_}) {
    const auto reader = test::open_strictly(path);
    const ExtentMap& map = reader->extents();
    const Share all = detail::part_of(map, {1, 1});
    EXPECT_EQ(all.guards, detail::all_guards(map));
    EXPECT_TRUE(std::ranges::is_sorted(all.blocks));
    Share together;
    for (std::int64_t number = 1; number <= 5; ++number) {
      const Share share = detail::part_of(map, {number, 5});
      EXPECT_FALSE(share.blocks.empty() && share.guards.empty()) << path << " " << number;
      together.blocks.insert(together.blocks.end(), share.blocks.begin(), share.blocks.end());
      together.guards.insert(together.guards.end(), share.guards.begin(), share.guards.end());
    }
    EXPECT_THAT(together.blocks, ElementsAreArray(all.blocks));
    EXPECT_THAT(together.guards, ElementsAreArray(all.guards));
  }
}

TEST_F(Subsets, AFlippedBitIsFoundInExactlyOnePart) {
  for (const fs::path& path : {plain_, packed_}) {
    const fs::path shard = path / "shard-00002-of-00004.h5";
    for (const double place : {0.1, 0.4, 0.7, 0.95}) {
      const auto offset = static_cast<std::int64_t>(place * static_cast<double>(file_size(shard)));
      flip(shard, offset);
      int found = 0;
      for (std::int64_t number = 1; number <= 4; ++number) {
        found += part(path, number, 4).findings.empty() ? 0 : 1;
      }
      flip(shard, offset);
      EXPECT_EQ(found, 1) << shard << " at " << offset;
    }
  }
}

TEST_F(Subsets, WhatHeadersTellIsTold) {
  fs::remove(plain_ / "shard-00001-of-00004.h5");
  for (std::int64_t number = 1; number <= 3; ++number) {
    EXPECT_EQ(part(plain_, number, 3).findings.front().id, "RM301");
  }
}

TEST_F(Subsets, AreRefusedWhereThereIsNoSuchPart) {
  for (const auto& [number, count] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 3}, {4, 3}, {-1, -1}, {0, 0}}) {
    EXPECT_THROW(part(plain_, number, count), Error) << number << "/" << count;
  }
  EXPECT_THROW(part(plain_, 1, 2, Level::quick), Error);
  EXPECT_THROW(part(plain_, 1, 2, Level::header), Error);
}

TEST_F(Subsets, ManyPartsOfLittleAreEmptyAndNoHarm) {
  EXPECT_THAT(part(plain_, 1'000'000'000'000, 1'000'000'000'000).findings, IsEmpty());
}

}  // namespace
}  // namespace remesh
