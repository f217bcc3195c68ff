// Native checkpoints whose payload is packed: what is written in any order is read in any box.

#include <filesystem>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arbitrary.hpp"
#include "frame_reader.hpp"
#include "native_fixture.hpp"
#include "remesh/store/chunks.hpp"
#include "remesh/store/tally.hpp"
#include "seeds.hpp"
#include "temporary_directory.hpp"

namespace remesh::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Tensors of which some pieces are large enough to be cut, and some elements can be compressed.
Catalog packable(std::mt19937& random) {
  const auto draw = [&](Index least, Index most) {
    return std::uniform_int_distribution<Index>(least, most)(random);
  };
  std::vector<std::pair<TensorDesc, std::uint32_t>> tensors;
  for (const DType dtype : {DType::boolean, DType::bf16, DType::f32, DType::c64, DType::f4}) {
    const Box extent{{0, draw(1, 120)}, {0, 2 * draw(20, 90)}};
    tensors.push_back({{"w." + std::string(to_string(dtype)), dtype, extent},
                       dtype == DType::f4 ? 0U : static_cast<std::uint32_t>(draw(0, 2))});
  }
  tensors.push_back({{"cube", DType::boolean, Box{{0, 2}, {0, draw(3, 9)}, {0, 1000}}}, 0});
  tensors.push_back({{"scalar", DType::f64, Box{}}, 0});
  tensors.push_back({{"empty", DType::f32, Box{{0, 0}, {0, 2000}}}, 0});
  return small_catalog(std::move(tensors));
}

// More than a block, so that there are many chunks, of which the last one is short.
Catalog large() {
  return small_catalog({{{"w", DType::boolean, Box{{0, 2050}, {0, 2048}}}, 1},
                        {{"noise", DType::u8, Box{{0, 3}, {0, 1'500'001}}}, 0},
                        {{"scales", DType::f32, Box{{0, 7}}}, 0}});
}

struct Part {
  std::size_t tensor;
  Box box;
};

// What is to be written: chunks, and pieces that are not cut.
std::vector<Part> parts_of(const Writer& writer) {
  std::vector<Part> parts;
  for (const Extent& extent : writer.extents().extents()) {
    if (extent.copy != 0) continue;
    if (!is_chunked(extent)) {
      parts.push_back({extent.tensor, extent.box});
      continue;
    }
    for (std::int64_t k = 0; k < num_chunks(extent); ++k) {
      parts.push_back({extent.tensor, chunk_box(extent, k)});
    }
  }
  return parts;
}

void write_packed(const Catalog& catalog, const fs::path& path, std::int64_t copies,
                  std::mt19937* shuffler) {
  const auto writer = start(path, catalog, {.copies = copies, .compress_level = 1, .job_id = "t"});
  const ExtentMap on_medium = writer->extents_on_medium();
  Tally tally(catalog.tensors, on_medium, /*with_blocks=*/true);
  std::vector<Part> parts = parts_of(*writer);
  if (shuffler != nullptr) std::ranges::shuffle(parts, *shuffler);
  for (const Part& part : parts) {
    writer->write(part.tensor, part.box, numbered(catalog.tensors[part.tensor], part.box),
                  tally.tap());
  }
  std::vector<Digest> blocks;
  for (std::size_t number = 0; number < on_medium.extents().size(); ++number) {
    for (std::int64_t k = 0; k < num_blocks(on_medium.extents()[number]); ++k) {
      blocks.push_back(tally.block(number, k));
    }
  }
  for (std::size_t tensor = 0; tensor < catalog.tensors.size(); ++tensor) {
    ASSERT_TRUE(tally.sum(tensor).complete) << catalog.tensors[tensor].name;
  }
  EXPECT_EQ(tally.stray_bytes(), 0);
  writer->seal(true_digests(catalog), blocks);
  ASSERT_TRUE(writer->publish());
}

std::map<std::string, std::string> files_in(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.is_regular_file()) files[entry.path().filename()] = content_of(entry.path());
  }
  return files;
}

// Some rows and columns of a box, or all of it.
Box part_of(const Box& whole, DType dtype, std::mt19937& random) {
  Box part = whole;
  for (int dim = 0; dim < whole.ndim() && bits(dtype) % 8 == 0; ++dim) {
    std::uniform_int_distribution<Index> border(whole[dim].begin, whole[dim].end);
    const auto [low, high] = std::minmax({border(random), border(random)});
    part[dim] = {low, high};
  }
  return part;
}

void expect_readable(const fs::path& path, const Catalog& catalog, std::mt19937& random) {
  StrictFindings findings;
  const auto reader = open_native(posix_file_system(), path, findings);
  Tally tally(catalog.tensors, reader->extents(), /*with_blocks=*/false);
  for (std::size_t tensor = 0; tensor < catalog.tensors.size(); ++tensor) {
    const TensorDesc& desc = catalog.tensors[tensor];
    for (int times = 0; times < 4; ++times) {
      const Box box = part_of(desc.extent, desc.dtype, random);
      std::vector<std::byte> bytes(static_cast<std::size_t>(num_bytes(desc.dtype, box)));
      reader->read(tensor, box, bytes, {});
      ASSERT_EQ(what_differs(desc, box, bytes), "");
    }
    std::vector<std::byte> bytes(static_cast<std::size_t>(num_bytes(desc)));
    reader->read(tensor, desc.extent, bytes, tally.tap());
    ASSERT_TRUE(tally.sum(tensor).complete) << desc.name;
    ASSERT_EQ(tally.sum(tensor).digest, digest_of(numbered(desc))) << desc.name;
  }
}

TEST(PackedStore, WhatIsWrittenInAnyOrderIsReadInAnyBox) {
  for (unsigned seed = 0; seed < num_seeds(15); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const TemporaryDirectory directory;
    const Catalog catalog = packable(random);
    write_packed(catalog, directory / "a", 1 + seed % 2, nullptr);
    write_packed(catalog, directory / "b", 1 + seed % 2, &random);
    expect_readable(directory / "a", catalog, random);
    EXPECT_TRUE(files_in(directory / "a") == files_in(directory / "b"))
        << "the bytes depend on the order in which chunks came";
    if (HasFatalFailure()) return;
  }
}

TEST(PackedStore, ManyChunksAndAShortLastOne) {
  std::mt19937 random(7);
  const TemporaryDirectory directory;
  write_packed(large(), directory / "a", 1, &random);
  expect_readable(directory / "a", large(), random);
  StrictFindings findings;
  const auto reader = open_native(posix_file_system(), directory / "a", findings);
  std::size_t raw = 0;
  for (const Frame& frame : reader->extents().all_frames()) raw += frame.raw ? 1 : 0;
  EXPECT_EQ(reader->extents().all_frames().size(), 2U * 3 + 3 * 2) << "two halves, and rows in two";
  EXPECT_EQ(raw, 6U) << "noise is stored as it is";
}

TEST(PackedStore, AChunkIsWrittenWhole) {
  const TemporaryDirectory directory;
  const Catalog catalog = large();
  const auto writer = start(directory / "a", catalog, {.compress_level = 1, .job_id = "t"});
  const Box half{{0, 10}, {0, 2048}};
  try {
    writer->write(0, half, numbered(catalog.tensors[0], half), {});
    FAIL() << "written";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::internal);
    EXPECT_THAT(error.what(), HasSubstr("it is no chunk of its piece"));
  }
}

TEST(PackedStore, AMissingChunkIsNeverSealed) {
  const TemporaryDirectory directory;
  const Catalog catalog = large();
  const auto writer = start(directory / "a", catalog, {.compress_level = 1, .job_id = "t"});
  std::vector<Part> parts = parts_of(*writer);
  std::erase_if(parts, [](const Part& part) { return part.tensor == 0 && part.box[0].begin == 0; });
  for (const Part& part : parts) {
    writer->write(part.tensor, part.box, numbered(catalog.tensors[part.tensor], part.box), {});
  }
  std::int64_t blocks = 0;
  for (const Extent& extent : writer->extents().extents()) blocks += num_blocks(extent);
  try {
    writer->seal(true_digests(catalog), std::vector<Digest>(static_cast<std::size_t>(blocks)));
    FAIL() << "sealed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::internal);
    EXPECT_THAT(error.what(), HasSubstr("was not written"));
  }
}

// One extent of 5 rows in chunks of 2, in a file of its frames.
class FramesTest : public ::testing::Test {
 protected:
  std::string refusal(std::vector<std::byte> chunk, bool raw = false, bool flip = false) {
    native::Encoder encoder(1);
    const native::EncodedChunk encoded = encoder.encode(chunk, 4);
    std::vector<std::byte> stored(encoded.bytes.begin(), encoded.bytes.end());
    Extent extent;
    extent.box = desc_.extent;
    extent.length_bytes = 5 * 4096;
    extent.first_block = extent.first_frame = 0;
    extent.chunk_dim = 0;
    extent.chunk_size = 2;
    const Digest crc = digest_of(stored);
    if (flip) stored[stored.size() / 2] ^= std::byte{1};
    const Frame frame{0, static_cast<std::int32_t>(stored.size()), raw};
    const ExtentMap map({{"shard", std::ssize(stored)}}, {extent}, {crc, crc, crc}, {},
                        {frame, frame, frame});
    const FrameReader::Read read = [&](std::uint32_t, std::int64_t offset,
                                       std::span<std::byte> into) {
      std::ranges::copy(std::span(stored).subspan(static_cast<std::size_t>(offset), into.size()),
                        into.begin());
    };
    FrameReader reader(map, std::span(&desc_, 1), read);
    try {
      reader.chunk(extent, 2);  // the short one
      return "";
    } catch (const Error& error) {
      return error.id() + ": " + error.what();
    }
  }

  const TensorDesc desc_{"w", DType::f32, Box{{0, 5}, {0, 1024}}};
};

TEST_F(FramesTest, AShortChunkEndsInZeros) {
  std::vector<std::byte> chunk(8192);
  EXPECT_EQ(refusal(chunk), "");
  chunk[4095] = std::byte{1};
  EXPECT_EQ(refusal(chunk), "") << "the last element of its row";
  chunk[4096] = std::byte{1};
  EXPECT_THAT(refusal(chunk), HasSubstr("RM207: cannot read bytes [0, "));
  EXPECT_THAT(refusal(chunk), HasSubstr("it holds other than zeros behind the elements"));
}

TEST_F(FramesTest, WhatDoesNotHaveItsCrcIsNotUnpacked) {
  EXPECT_THAT(refusal(std::vector<std::byte>(8192), false, /*flip=*/true),
              HasSubstr("is recorded; the file changed after it was written"));
}

TEST_F(FramesTest, AFrameOfAnotherSizeIsRefused) {
  EXPECT_THAT(refusal(std::vector<std::byte>(8188)), HasSubstr("RM207"));
  EXPECT_THAT(refusal(std::vector<std::byte>(8196)), HasSubstr("RM207"));
}

}  // namespace
}  // namespace remesh::test
