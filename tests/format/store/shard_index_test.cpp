#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "little_endian.hpp"
#include "remesh/core/error.hpp"
#include "shard_reader.hpp"
#include "shard_writer.hpp"

namespace remesh::native {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ShardHeader header() {
  ShardHeader header;
  header.sealed = true;
  header.file_bytes = 20'000;
  header.index = {4096, 5000};
  header.index_crc = {0x1111};
  header.complement_crc = {0x2222};
  header.rank = 3;
  header.ranks = 8;
  header.save_id[0] = std::byte{0xAB};
  header.save_id[15] = std::byte{0xCD};
  return header;
}

Extent extent(std::uint32_t tensor, std::int64_t offset, std::int64_t length, Box box) {
  return {.tensor = tensor,
          .file = 0,
          .rank = 3,
          .copy = 0,
          .offset_bytes = offset,
          .length_bytes = length,
          .box = box,
          .first_block = 0};
}

// Tensor 2 without elements; tensor 5 in two boxes, of which one has a gap behind it; a scalar.
ShardIndex index() {
  ShardIndex index;
  index.tensors = {{2, {"empty", DType::u8, Box{{0, 0}}}},
                   {5, {"w", DType::f32, Box{{0, 8}, {0, 4}}}},
                   {7, {"s", DType::f64, Box{}}}};
  index.extents = {extent(0, 0, 0, Box{{0, 0}}), extent(1, 6000, 32, Box{{0, 2}, {0, 4}}),
                   extent(1, 8000, 48, Box{{5, 8}, {0, 4}}), extent(2, 19'992, 8, Box{})};
  number_blocks(index.extents);
  index.block_crcs = {{1}, {2}, {3}};
  return index;
}

// A box of 5 rows in chunks of 2, of which one is stored as it is; and a box in one piece.
ShardIndex chunked() {
  ShardIndex index;
  index.tensors = {{5, {"w", DType::f32, Box{{0, 8}, {0, 4}}}},
                   {7, {"s", DType::f32, Box{{0, 1}}}}};
  index.extents = {extent(0, 6000, 80, Box{{0, 5}, {0, 4}}), extent(1, 8000, 4, Box{{0, 1}})};
  index.extents[0].chunk_dim = 0;
  index.extents[0].chunk_size = 2;
  index.frames = {{6000, 15, false}, {6100, 32, true}, {6200, 10, false}};
  number_blocks(index.extents);
  index.block_crcs = {{1}, {2}, {3}, {4}};
  return index;
}

void fix_header_crc(std::vector<std::byte>& block) {
  const Digest crc = digest_of(std::span(block).first(header_field::header_crc));
  store(block, header_field::header_crc, crc.value);
}

// The id and message with which a parser refuses; empty if it does not.
std::string refusal(const std::function<void()>& parse) {
  try {
    parse();
    return {};
  } catch (const Error& error) {
    return error.id() + ": " + error.what();
  }
}

TEST(ShardHeader, ReadsBackAsItWasWritten) {
  for (const bool sealed : {false, true}) {
    ShardHeader written = header();
    written.sealed = sealed;
    EXPECT_EQ(parse_header(encode(written)), written);
  }
}

TEST(ShardHeader, EveryFlippedBitIsNoticed) {
  const std::vector<std::byte> whole = encode(header());
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::vector<std::byte> flipped = whole;
    flipped[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_NE(refusal([&] { parse_header(flipped); }), "") << "bit " << bit;
  }
}

struct HeaderDefect {
  const char* name;
  std::size_t field;
  std::uint64_t value;
  int width;
  const char* refusal;
};

// Each with a CRC that fits, so that the field itself is what is judged.
TEST(ShardHeader, EveryImpossibleFieldIsRefused) {
  const std::vector<HeaderDefect> defects{
      {"another version", header_field::version, 2, 4, "RM102: it has format version 2; this"},
      {"unknown state", header_field::state, 2, 4, "RM207: its header has state 2"},
      {"negative size", header_field::file_bytes, 1ULL << 63, 8,
       "RM207: its header gives the file"},
      {"index before the header's end", header_field::index_offset, 4095, 8, "places an index"},
      {"index behind the end", header_field::index_offset, 20'001, 8, "places an index"},
      {"index reaches over the end", header_field::index_bytes, 15'905, 8, "places an index"},
      {"index wraps", header_field::index_offset, (1ULL << 63) - 1, 8, "places an index"},
      {"index too short", header_field::index_bytes, 47, 8, "places an index of 47"},
      {"huge index", header_field::index_bytes, (1ULL << 30) + 1, 8, "RM605: its index has"},
      {"rank beyond ranks", header_field::rank, 8, 4, "it is rank 8 of 8"},
      {"no ranks", header_field::ranks, 0, 4, "it is rank 3 of 0"},
      {"reserved bytes", header_field::end, 1, 4, "reserved bytes"},
      {"reserved bytes", header_field::header_crc - 4, 1, 4, "reserved bytes"},
  };
  for (const HeaderDefect& defect : defects) {
    std::vector<std::byte> block = encode(header());
    if (defect.width == 4) store(block, defect.field, static_cast<std::uint32_t>(defect.value));
    if (defect.width == 8) store(block, defect.field, defect.value);
    fix_header_crc(block);
    EXPECT_THAT(refusal([&] { parse_header(block); }), HasSubstr(defect.refusal)) << defect.name;
  }
}

TEST(ShardIndex, ReadsBackAsItWasWritten) {
  EXPECT_EQ(parse_index(encode(index()), header()), index());
}

TEST(ShardIndex, AnEmptyOneIsLegal) {
  EXPECT_EQ(parse_index(encode(ShardIndex{}), header()), ShardIndex{});
}

struct IndexDefect {
  const char* name;
  std::function<void(ShardIndex&)> spoil;
  const char* refusal;
};

TEST(ShardIndex, EveryImpossibleContentIsRefused) {
  // clang-format off
  const std::vector<IndexDefect> defects{
      {"offset in the header", [](auto& i) { i.extents[1].offset_bytes = 4095; },
       "RM207: its index places 32 bytes at 4095"},
      {"inside the index", [](auto& i) { i.extents[1].offset_bytes = 4999; },
       "RM209: its index places 32 bytes at 4999"},
      {"overlap", [](auto& i) { i.extents[2].offset_bytes = 6031; },
       "RM209: its index places 48 bytes at 6031"},
      {"behind the end", [](auto& i) { i.extents[3].offset_bytes = 19'993; },
       "RM207: its index places 8 bytes at 19993"},
      {"end wraps", [](auto& i) { i.extents[3].offset_bytes = INT64_MAX - 3; },
       "RM207: its index places 8 bytes"},
      {"negative offset", [](auto& i) { i.extents[0].offset_bytes = -1; },
       "gives a place to no bytes"},
      {"out of order", [](auto& i) { std::swap(i.extents[1], i.extents[2]); }, "out of order"},
      {"twice", [](auto& i) { i.extents[0] = i.extents[1]; }, "out of order"},
      {"too long", [](auto& i) { i.extents[1].length_bytes = 33; },
       "gives 33 bytes to [0, 2) x [0, 4)"},
      {"negative length", [](auto& i) { i.extents[1].length_bytes = -32; }, "gives -32 bytes"},
      {"box outside",
       [](auto& i) {
         i.extents[2].box[0] = {6, 9};
       },
       "has the box [6, 9) x [0, 4)"},
      {"box negative",
       [](auto& i) {
         i.extents[1].box[0] = {-1, 1};
       },
       "has the box [-1, 1)"},
      {"box reversed",
       [](auto& i) {
         i.extents[1].box[0] = {2, 0};
       },
       "has the box [2, 0)"},
      {"place without bytes", [](auto& i) { i.extents[0].offset_bytes = 5000; },
       "gives a place to no bytes"},
      {"block out of order", [](auto& i) { i.extents[2].first_block = 0; },
       "blocks of its index are out of order"},
      {"block missing", [](auto& i) { i.block_crcs.pop_back(); }, "has 2 blocks or frames, but more are needed"},
      {"block too many", [](auto& i) { i.block_crcs.push_back({4}); },
       "records 4 block CRCs for 3"},
      {"unknown dtype", [](auto& i) { i.tensors[1].desc.dtype = static_cast<DType>(99); },
       "has dtype 99"},
      {"no dtype", [](auto& i) { i.tensors[1].desc.dtype = static_cast<DType>(0); }, "has dtype 0"},
      {"no name", [](auto& i) { i.tensors[1].desc.name.clear(); }, "it has no name"},
      {"long name", [](auto& i) { i.tensors[1].desc.name.assign(4097, 'n'); },
       "its name has 4097 bytes"},
      {"shape overflows", [](auto& i) { i.tensors[1].desc.extent[0].end = INT64_MAX / 2; },
       "does not fit 63 bits"},
      {"negative shape", [](auto& i) { i.tensors[1].desc.extent[0].end = -8; }, "dim 0 is [0, -8)"},
      {"numbers repeat", [](auto& i) { i.tensors[1].number = 2; }, "lists tensor 2 after 2"},
      {"numbers descend", [](auto& i) { i.tensors[0].number = 6; }, "lists tensor 5 after 6"},
      {"odd bits",
       [](auto& i) {
         i.tensors[0].desc = {"x", DType::f4, Box{{0, 3}}};
       },
       "are no whole bytes"},
  };
  // clang-format on
  for (const IndexDefect& defect : defects) {
    ShardIndex spoiled = index();
    defect.spoil(spoiled);
    EXPECT_THAT(refusal([&] { parse_index(encode(spoiled), header()); }), HasSubstr(defect.refusal))
        << defect.name;
  }
}

TEST(ShardIndex, AnExtentOfNoTensorIsRefused) {
  std::vector<std::byte> bytes = encode(index());
  // The tensor column lies behind the block CRCs, the numbers and the name lengths.
  const std::size_t column = 56 + 8 * (3 + 4 * 4 + 10 + 3) + 4 * (3 + 3);
  ASSERT_EQ(load<std::uint32_t>(bytes, column + 4), 1U);
  store(bytes, column + 4, std::uint32_t{3});
  EXPECT_THAT(refusal([&] { parse_index(bytes, header()); }),
              HasSubstr("an extent of tensor 3 of 3"));
}

TEST(ShardIndex, NineDimsAreRefused) {
  std::vector<std::byte> bytes = encode(index());
  const std::size_t ndims = 56 + 8 * (3 + 4 * 4 + 10 + 3) + 4 * (3 + 3 + 4 + 4) + 3;
  ASSERT_EQ(load<std::uint8_t>(bytes, ndims + 1), 2U);
  store(bytes, ndims + 1, std::uint8_t{9});
  EXPECT_THAT(refusal([&] { parse_index(bytes, header()); }), HasSubstr("has 9 dims"));
}

TEST(ShardIndex, CountsThatDoNotFillItAreRefused) {
  for (std::size_t field = 0; field < 56; field += 8) {
    for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{99}, std::uint64_t{1} << 40,
                                      ~std::uint64_t{0}, (~std::uint64_t{0} >> 3) + 1}) {
      std::vector<std::byte> bytes = encode(index());
      if (load<std::uint64_t>(bytes, field) == value) continue;  // there are no frames
      store(bytes, field, value);
      EXPECT_NE(refusal([&] { parse_index(bytes, header()); }), "")
          << "count at " << field << " is " << value;
    }
  }
}

TEST(ShardIndex, ReadsBackFrames) {
  EXPECT_EQ(parse_index(encode(chunked()), header()), chunked());
}

TEST(ShardIndex, ImpossibleFramesAreRefusedAndNamed) {
  const struct {
    const char* what;
    std::function<void(ShardIndex&)> spoil;
    const char* message;
  } cases[] = {
      {"a dim too many", [](auto& i) { i.extents[0].chunk_dim = 2; },
       "RM207: its index cuts [0, 5) x [0, 4) of 'w' (f32, [0, 8) x [0, 4)) into chunks of 2 along "
       "dim 2"},
      {"chunks of nothing", [](auto& i) { i.extents[0].chunk_size = 0; }, "into chunks of 0"},
      {"of less", [](auto& i) { i.extents[0].chunk_size = -1; }, "into chunks of -1"},
      {"of more than there is", [](auto& i) { i.extents[0].chunk_size = 6; }, "into chunks of 6"},
      {"a size and no dim", [](auto& i) { i.extents[1].chunk_size = 1; },
       "chunks of 1 along dim -1"},
      {"too few frames", [](auto& i) { i.extents[0].chunk_size = 1; }, "4 blocks or frames"},
      {"a frame too many",
       [](auto& i) {
         i.frames.push_back({9000, 1, false});
       },
       "RM207: its index has 4 frames for 3 chunks"},
      {"elsewhere than its extent", [](auto& i) { i.frames[0].offset_bytes = 6001; },
       "RM207: its index places frames at 6000, but the first of them at 6001"},
      {"no bytes", [](auto& i) { i.frames[2].length_bytes = 0; }, "RM207: its index gives 0 bytes"},
      {"compressed to the same", [](auto& i) { i.frames[2].length_bytes = 32; },
       "RM207: its index gives 32 bytes to a compressed chunk of 32"},
      {"a part of it, plain", [](auto& i) { i.frames[1].length_bytes = 31; },
       "RM207: its index gives 31 bytes to a plain chunk of 32"},
      {"one over the other", [](auto& i) { i.frames[1].offset_bytes = 6014; },
       "RM209: its index places 32 bytes at 6014"},
      {"over the next extent", [](auto& i) { i.frames[2].offset_bytes = 7995; },
       "RM209: its index places 4 bytes at 8000"},
      {"in the index", [](auto& i) { i.extents[0].offset_bytes = i.frames[0].offset_bytes = 4990; },
       "RM209: its index places 15 bytes at 4990"},
      {"behind the end", [](auto& i) { i.frames[2].offset_bytes = 19'991; },
       "RM207: its index places"},
      {"far behind the end", [](auto& i) { i.frames[2].offset_bytes = INT64_MAX - 3; },
       "RM207: its index places"},
  };
  for (const auto& [what, spoil, message] : cases) {
    ShardIndex index = chunked();
    spoil(index);
    EXPECT_THAT(refusal([&] { parse_index(encode(index), header()); }), HasSubstr(message)) << what;
  }
}

TEST(ShardIndex, NoChunkIsLargerThanABlock) {
  ShardIndex index;
  constexpr Index rows = Index{1} << 40;  // 4 TiB, in a file of 20,000 bytes
  index.tensors = {{0, {"w", DType::f32, Box{{0, rows}}}}};
  index.extents = {extent(0, 6000, 4 * rows, Box{{0, rows}})};
  index.extents[0].chunk_dim = 0;
  index.extents[0].chunk_size = (Index{1} << 18) + 1;
  index.frames = {{6000, 15, false}};
  index.block_crcs = {{1}};
  EXPECT_THAT(refusal([&] { parse_index(encode(index), header()); }),
              HasSubstr("into chunks of 262145"));
  index.extents[0].chunk_size = Index{1} << 18;
  EXPECT_THAT(refusal([&] { parse_index(encode(index), header()); }),
              HasSubstr("1 blocks or frames"));
}

TEST(ShardIndex, AFrameOfAnUnknownKindIsRefused) {
  std::vector<std::byte> bytes = encode(chunked());
  const std::size_t kinds = bytes.size() - 6;  // three of them, the names "w" and "s", and one zero
  ASSERT_EQ(bytes[kinds + 1], std::byte{1});
  bytes[kinds] = std::byte{2};
  EXPECT_THAT(refusal([&] { parse_index(bytes, header()); }), HasSubstr("a frame of kind 2"));
}

TEST(ShardIndex, EveryTruncationIsRefused) {
  const std::vector<std::byte> whole = encode(index());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<long>(length));
    EXPECT_NE(refusal([&] { parse_index(cut, header()); }), "") << "length " << length;
  }
}

TEST(Complement, IsEveryByteBehindTheHeaderThatNoExtentHas) {
  EXPECT_THAT(complement(20'000, index()),
              ElementsAre(ByteRange{4096, 6000}, ByteRange{6032, 8000}, ByteRange{8048, 19'992}));
  EXPECT_THAT(complement(5000, {}), ElementsAre(ByteRange{4096, 5000}));
  EXPECT_THAT(complement(4096, {}), ElementsAre());
  ShardIndex full;
  full.extents = {extent(0, 4096, 4, Box{{0, 4}}), extent(0, 4100, 4, Box{{4, 8}})};
  EXPECT_THAT(complement(4104, full), ElementsAre());
  EXPECT_THAT(complement(20'000, chunked()),
              ElementsAre(ByteRange{4096, 6000}, ByteRange{6015, 6100}, ByteRange{6132, 6200},
                          ByteRange{6210, 8000}, ByteRange{8004, 20'000}));
}

TEST(ShardName, CountsWithFiveDigitsOrMore) {
  EXPECT_EQ(shard_name(3, 8), "shard-00003-of-00008.h5");
  EXPECT_EQ(shard_name(123'456, 200'000), "shard-123456-of-200000.h5");
}

}  // namespace
}  // namespace remesh::native
