#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job.hpp"
#include "remesh/core/error.hpp"
#include "temporary_directory.hpp"

// A flipped byte, wherever it is, is found and located by the judge, and refused by the mover,
// which then leaves nothing behind.

namespace remesh {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;

const fs::path fixture = fs::path(REMESH_SOURCE_DIR) / "fixtures/llama-gqa";

void flip(const fs::path& file, std::int64_t offset, unsigned char mask) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(offset);
  const int byte = stream.get();
  ASSERT_GE(byte, 0) << file << " has no byte " << offset;
  stream.seekp(offset);
  stream.put(static_cast<char>(byte ^ mask));
}

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

class Flips : public ::testing::Test {
 protected:
  Flips() {
    test::run_job(machine_, fixture, checkpoint_, {.mesh = "tp=2,pp=2"});
    map_ = test::open_strictly(checkpoint_)->extents();
  }

  // Flips one payload byte, and expects it to be named to the byte's block, tensor and box.
  void expect_found(const Extent& extent, std::int64_t offset, unsigned char mask) {
    const auto reader = test::open_strictly(checkpoint_);
    const std::string file(map_.files()[extent.file].name);
    const TensorDesc& desc = reader->catalog().tensors[extent.tensor];
    SCOPED_TRACE("byte " + std::to_string(offset) + " of " + file + " (" + desc.name + ")");
    flip(checkpoint_ / file, offset, mask);
    const Report report = verify(machine_.judge(), test::opener(checkpoint_), Level::full);
    ASSERT_EQ(report.findings.size(), 1u);
    const Finding& finding = report.findings.front();
    EXPECT_EQ(finding.id, "RM207");
    EXPECT_EQ(finding.severity, Severity::error);
    EXPECT_EQ(finding.file, file);
    EXPECT_EQ(finding.tensor, desc.name);
    ASSERT_TRUE(finding.bytes && finding.box);
    EXPECT_LE(finding.bytes->begin, offset);
    EXPECT_GT(finding.bytes->end, offset);
    EXPECT_TRUE(contains(extent.box, *finding.box));
    flip(checkpoint_ / file, offset, mask);
  }

  test::Machine machine_;
  test::TemporaryDirectory directory_;
  const fs::path checkpoint_ = directory_ / "ck1";
  ExtentMap map_;
};

TEST_F(Flips, TheFirstAndTheLastByteOfEveryDatasetAreFound) {
  for (const Extent& extent : map_.extents()) {
    if (extent.length_bytes == 0) continue;
    expect_found(extent, extent.offset_bytes, 0x01);
    expect_found(extent, extent.offset_bytes + extent.length_bytes - 1, 0x80);
  }
  EXPECT_THAT(verify(machine_.judge(), test::opener(checkpoint_), Level::full).findings, IsEmpty())
      << "every byte was put back";
}

TEST_F(Flips, AThousandRandomOnesAreFound) {
  const unsigned seed = 20250711;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 engine(seed);
  const auto extents = map_.extents();
  for (int count = 0; count < 1000; ++count) {
    const Extent& extent = extents[engine() % extents.size()];
    const auto length = static_cast<std::uint32_t>(extent.length_bytes);
    const auto mask = static_cast<unsigned char>(1u << engine() % 8);
    expect_found(extent, extent.offset_bytes + static_cast<std::int64_t>(engine() % length), mask);
  }
}

TEST_F(Flips, AreRefusedByTheMoverWhichLeavesNothing) {
  const unsigned seed = 20250712;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 engine(seed);
  const auto extents = map_.extents();
  const std::vector<std::string> before = names_in(directory_.path());
  for (int count = 0; count < 50; ++count) {
    const Extent& extent = extents[engine() % extents.size()];
    const auto offset =
        static_cast<std::int64_t>(engine() % static_cast<std::uint32_t>(extent.length_bytes));
    const fs::path file = checkpoint_ / std::string(map_.files()[extent.file].name);
    flip(file, extent.offset_bytes + offset, 0x10);
    try {
      test::run_job(machine_, checkpoint_, directory_ / "ck2", {.mesh = "tp=4"});
      ADD_FAILURE() << "moved a damaged tensor";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::corrupt) << error.what();
      EXPECT_EQ(error.id(), "RM207");
    }
    EXPECT_EQ(names_in(directory_.path()), before);
    flip(file, extent.offset_bytes + offset, 0x10);
  }
}

TEST_F(Flips, BesideThePayloadAreFoundToo) {
  for (const auto& entry : fs::recursive_directory_iterator(checkpoint_)) {
    if (!entry.is_regular_file()) continue;
    const std::string name = fs::relative(entry.path(), checkpoint_).string();
    std::mt19937 engine(7);
    for (int count = 0; count < 40; ++count) {
      const auto offset =
          static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(entry.file_size()));
      SCOPED_TRACE("byte " + std::to_string(offset) + " of " + name);
      flip(entry.path(), offset, 0x04);
      const Report report = verify(machine_.judge(), test::opener(checkpoint_), Level::full);
      EXPECT_GE(report.count(Severity::error), 1);
      flip(entry.path(), offset, 0x04);
    }
  }
}

}  // namespace
}  // namespace remesh
