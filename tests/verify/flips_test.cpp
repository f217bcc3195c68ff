#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../format/store/native_fixture.hpp"
#include "chunked_content.hpp"
#include "job.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/certificate.hpp"
#include "seeds.hpp"
#include "temporary_directory.hpp"

// A flipped byte, wherever it is, is found and located by the judge, and refused by the mover,
// which then leaves nothing behind.

namespace remesh {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
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

// ---- A checkpoint of one shard, byte by byte

class OneShard : public ::testing::Test {
 protected:
  OneShard(std::vector<TensorDesc> tensors, std::optional<int> level)
      : source_of_(tensors.size()), rounded_(tensors.size()) {
    std::iota(source_of_.begin(), source_of_.end(), std::size_t{0});
    Catalog catalog;
    catalog.tensors = std::move(tensors);
    catalog.layout = Layout::replicated({}, catalog.tensors.size());
    catalog.side = {test::side_file("config.json")};
    const auto writer = create_native(posix_file_system(), checkpoint_, catalog, test::side_bytes,
                                      {.compress_level = level, .job_id = "test"});
    test::write_and_seal(*writer);
    writer->certify(certificate_text({.source = writer->catalog(),
                                      .target = writer->catalog(),
                                      .source_of = source_of_,
                                      .source_digests = writer->catalog().digests,
                                      .target_digests = writer->catalog().digests,
                                      .rounded = rounded_,
                                      .cast_reason = {},
                                      .dropped = {},
                                      .dropped_side = {},
                                      .manifest = writer->manifest_digest(),
                                      .read_back = true}));
    writer->publish();
    reader_ = test::open_strictly(checkpoint_);
    map_ = reader_->extents();
  }

  std::vector<Finding> judged() {
    return verify(machine_.judge(), test::opener(checkpoint_), Level::full).findings;
  }

  // The block of payload that has a byte of a file.
  struct Place {
    const Extent* extent;
    std::int64_t k;
    ByteRange bytes;
  };
  std::optional<Place> payload_at(const std::string& file, std::int64_t offset) const {
    for (const Extent& extent : map_.extents()) {
      if (map_.files()[extent.file].name != file) continue;
      for (std::int64_t k = 0; k < num_blocks(extent); ++k) {
        const ByteRange bytes = test::place_of_block(map_, extent, k);
        if (bytes.begin <= offset && offset < bytes.end) return Place{&extent, k, bytes};
      }
    }
    return std::nullopt;
  }

  void expect_named(const std::vector<Finding>& findings, const Place& place, std::int64_t offset,
                    unsigned bit) const {
    ASSERT_EQ(findings.size(), 1u);
    const Finding& finding = findings.front();
    const Catalog& catalog = reader_->catalog();
    EXPECT_EQ(finding.id, "RM207");
    EXPECT_EQ(finding.tensor, catalog.tensors[place.extent->tensor].name);
    EXPECT_EQ(finding.bytes, place.bytes);
    const Box box =
        is_chunked(*place.extent) ? chunk_box(*place.extent, place.k) : place.extent->box;
    EXPECT_EQ(finding.box, box);
    EXPECT_THAT(
        finding.message,
        HasSubstr(fmt::format("; one flipped bit explains it: bit {} of byte {}", bit, offset)));
  }

  void expect_found(const std::string& file, std::int64_t offset, unsigned bit) {
    SCOPED_TRACE(fmt::format("bit {} of byte {} of {}", bit, offset, file));
    flip(checkpoint_ / file, offset, static_cast<unsigned char>(1u << bit));
    const std::vector<Finding> findings = judged();
    flip(checkpoint_ / file, offset, static_cast<unsigned char>(1u << bit));
    const auto place = payload_at(file, offset);
    if (place) expect_named(findings, *place, offset, bit);
    // That COMMIT and manifest differ says nothing about which of the two it is.
    const bool either = file == "manifest.json" || file == "COMMIT";
    EXPECT_TRUE(std::ranges::any_of(findings,
                                    [&](const Finding& finding) {
                                      return finding.severity == Severity::error &&
                                             (finding.file == file ||
                                              (either && finding.file == "COMMIT"));
                                    }))
        << findings.size() << " findings";
  }

  // Flips one bit of every `stride`-th byte, another one in each round.
  void expect_all_found(const std::string& file, unsigned stride) {
    const unsigned rounds = test::num_seeds(1);
    const auto size = static_cast<std::int64_t>(fs::file_size(checkpoint_ / file));
    const unsigned step = rounds > 1 ? 1 : stride;
    for (unsigned round = 0; round < std::min(rounds, 8u); ++round) {
      for (std::int64_t at = 0; at < size && !HasFailure(); at += step) {
        expect_found(file, at, static_cast<unsigned>(at / step + round) % 8);
      }
    }
    EXPECT_THAT(judged(), IsEmpty()) << "every byte of " << file << " was put back";
  }

  std::vector<std::size_t> source_of_;
  std::vector<std::int64_t> rounded_;
  test::Machine machine_;
  test::TemporaryDirectory directory_;
  const fs::path checkpoint_ = directory_ / "ckpt";
  ExtentMap map_;
  std::unique_ptr<Reader> reader_;
};

const std::string one_shard = "shard-00000-of-00001.h5";

class CompressedFlips : public OneShard {
 protected:
  CompressedFlips()
      : OneShard({{"smooth.wide", DType::bf16, Box{{0, 3}, {0, 180'000}}},
                  {"smooth.rows", DType::bf16, Box{{0, 40}, {0, 64}}},
                  {"noise", DType::f32, Box{{0, 33}, {0, 32}}},
                  {"bias", DType::bf16, Box{{0, 30}}}},
                 1) {}
};

TEST_F(CompressedFlips, HaveFramesOfAllKindsToFlip) {
  int raw = 0;
  int short_chunks = 0;
  int whole = 0;
  const auto reader = test::open_strictly(checkpoint_);
  for (const Extent& extent : map_.extents()) {
    const auto frames = map_.frames(extent);
    for (std::int64_t k = 0; k < std::ssize(frames); ++k) {
      const DType dtype = reader->catalog().tensors[extent.tensor].dtype;
      const ByteRange range = chunk_range(dtype, extent, k);
      raw += frames[static_cast<std::size_t>(k)].raw ? 1 : 0;
      ++(range.end - range.begin < whole_chunk_bytes(dtype, extent) ? short_chunks : whole);
    }
  }
  EXPECT_EQ(raw, 1);
  EXPECT_EQ(short_chunks, 1);
  EXPECT_EQ(whole, 3);
  EXPECT_EQ(test::damage_in(*reader), "");
}

TEST_F(CompressedFlips, AreFoundInEveryByteOfItsShard) { expect_all_found(one_shard, 17); }

TEST_F(CompressedFlips, AreFoundInEveryByteBesideIt) {
  expect_all_found("manifest.json", 3);
  expect_all_found("COMMIT", 1);
  expect_all_found("proof.json", 3);
  expect_all_found("side/config.json", 1);
}

// Any bit of any file; `./dev soak` flips a million.
class RandomFlips : public OneShard, public ::testing::WithParamInterface<std::optional<int>> {
 protected:
  RandomFlips()
      : OneShard({{"smooth.rows", DType::bf16, Box{{0, 40}, {0, 64}}},
                  {"noise", DType::f32, Box{{0, 33}, {0, 32}}},
                  {"bias", DType::bf16, Box{{0, 30}}}},
                 GetParam()) {}
};

TEST_P(RandomFlips, AreFound) {
  constexpr unsigned seed = 20261130;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::vector<std::pair<std::string, std::int64_t>> files;
  std::int64_t all = 0;
  for (const auto& entry : fs::recursive_directory_iterator(checkpoint_)) {
    if (!entry.is_regular_file()) continue;
    const auto size = static_cast<std::int64_t>(entry.file_size());
    files.emplace_back(fs::relative(entry.path(), checkpoint_).string(), size);
    all += size;
  }
  std::ranges::sort(files);
  ASSERT_EQ(files.size(), 5u);
  std::mt19937_64 engine(seed);
  for (unsigned count = test::num_seeds(500); count > 0 && !HasFailure(); --count) {
    const std::uint64_t drawn = engine();
    auto at = static_cast<std::int64_t>(drawn / 8 % static_cast<std::uint64_t>(all));
    auto file = files.begin();
    for (; at >= file->second; ++file) at -= file->second;
    expect_found(file->first, at, static_cast<unsigned>(drawn % 8));
  }
  EXPECT_THAT(judged(), IsEmpty()) << "every bit was put back";
}

INSTANTIATE_TEST_SUITE_P(Native, RandomFlips, ::testing::Values(std::nullopt, 1),
                         [](const auto& packed) { return packed.param ? "Compressed" : "Plain"; });

}  // namespace
}  // namespace remesh
