#include "chunk_codec.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>
#include <zstd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arbitrary.hpp"
#include "byte_shuffle.hpp"
#include "little_endian.hpp"
#include "remesh/core/error.hpp"

namespace remesh::native {
namespace {

using Bytes = std::vector<std::byte>;
using ::testing::HasSubstr;

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;
constexpr std::array<std::size_t, 5> element_sizes{1, 2, 4, 8, 3};

// Weights as a model has them: near zero, so that exponents repeat and the low bits do not.
Bytes bf16_like(test::Arbitrary& draw, std::int64_t count) {
  Bytes bytes;
  bytes.reserve(static_cast<std::size_t>(count) + 1);
  while (std::ssize(bytes) < count) {
    float sum = 0;
    for (int term = 0; term < 4; ++term) sum += static_cast<float>(draw.between(-1000, 1000));
    append(bytes, static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(sum * 1e-5F) >> 16));
  }
  bytes.resize(static_cast<std::size_t>(count));
  return bytes;
}

Bytes constant(std::int64_t count) {
  return Bytes(static_cast<std::size_t>(count), std::byte{0x3f});
}

struct Stored {
  Bytes bytes;
  bool raw = false;

  friend bool operator==(const Stored&, const Stored&) = default;
};

Stored encode(Encoder& encoder, const Bytes& chunk, std::size_t element_bytes) {
  const EncodedChunk encoded = encoder.encode(chunk, element_bytes);
  return {Bytes(encoded.bytes.begin(), encoded.bytes.end()), encoded.raw};
}

Stored encode(const Bytes& chunk, std::size_t element_bytes = 2, int level = 1) {
  Encoder encoder(level);
  return encode(encoder, chunk, element_bytes);
}

// In a block of exactly its size, so that the address sanitizer sees a read past its end.
struct Exact {
  explicit Exact(std::span<const std::byte> from)
      : data(std::make_unique<std::byte[]>(from.size())), size(from.size()) {
    std::ranges::copy(from, data.get());
  }

  std::span<const std::byte> bytes() const { return {data.get(), size}; }

  std::unique_ptr<std::byte[]> data;
  std::size_t size;
};

// What the decoder says against a frame; empty if it reads it.
std::string complaint(Decoder& decoder, std::span<const std::byte> frame, std::int64_t chunk_bytes,
                      bool raw = false) {
  const Exact exact(frame);
  Bytes into(static_cast<std::size_t>(chunk_bytes));
  try {
    decoder.decode(exact.bytes(), raw, 2, into);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::corrupt);
    EXPECT_EQ(error.id(), "RM207");
    return error.what();
  }
}

std::string complaint(std::span<const std::byte> frame, std::int64_t chunk_bytes,
                      bool raw = false) {
  Decoder decoder;
  return complaint(decoder, frame, chunk_bytes, raw);
}

Bytes bytes_of(std::initializer_list<unsigned> values) {
  Bytes bytes;
  bytes.reserve(values.size());
  for (const unsigned value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

// "abcd" in one stored block, by hand: magic, descriptor, what `header` says, block.
Bytes frame_by_hand(unsigned descriptor, std::initializer_list<unsigned> header) {
  Bytes frame = bytes_of({0x28, 0xb5, 0x2f, 0xfd, descriptor});
  const Bytes fields = bytes_of(header);
  const Bytes block = bytes_of({4U << 3 | 1U, 0, 0, 'a', 'b', 'c', 'd'});
  frame.insert(frame.end(), fields.begin(), fields.end());
  frame.insert(frame.end(), block.begin(), block.end());
  return frame;
}

void expect_round_trip(Encoder& encoder, Decoder& decoder, const Bytes& chunk) {
  for (const std::size_t element_bytes : element_sizes) {
    const EncodedChunk encoded = encoder.encode(chunk, element_bytes);
    const Exact stored(encoded.bytes);
    Bytes back(chunk.size());
    decoder.decode(stored.bytes(), encoded.raw, element_bytes, back);
    ASSERT_EQ(back, chunk) << chunk.size() << " bytes in elements of " << element_bytes;
  }
}

TEST(ChunkCodec, GivesBackChunksOfEverySmallSize) {
  test::Arbitrary draw(1);
  Encoder encoder(1);
  Decoder decoder;
  const Bytes random = draw.bytes(5000);
  const Bytes weights = bf16_like(draw, 5000);
  for (std::ptrdiff_t size = 0; size <= 5000; size += size < 300 ? 1 : 13) {
    expect_round_trip(encoder, decoder, Bytes(random.begin(), random.begin() + size));
    expect_round_trip(encoder, decoder, Bytes(weights.begin(), weights.begin() + size));
    expect_round_trip(encoder, decoder, constant(size));
  }
}

TEST(ChunkCodec, GivesBackWholeChunks) {
  test::Arbitrary draw(2);
  Encoder encoder(1);
  Decoder decoder;
  for (const std::int64_t size : {mebibyte, mebibyte - 1, mebibyte + 3}) {
    expect_round_trip(encoder, decoder, draw.bytes(size));
    expect_round_trip(encoder, decoder, bf16_like(draw, size));
    expect_round_trip(encoder, decoder, constant(size));
  }
}

TEST(ChunkCodec, GivesBackChunksOfEveryLevel) {
  test::Arbitrary draw(3);
  Decoder decoder;
  const Bytes weights = bf16_like(draw, 70'001);
  for (int level = least_level; level <= most_level; ++level) {
    Encoder encoder(level);
    expect_round_trip(encoder, decoder, weights);
  }
}

TEST(ChunkCodec, OtherLevelsAreRefused) {
  for (const int level : {-5, 0, 20, 22, 1000}) {
    const auto refuse = [&](const auto& attempt) {
      try {
        attempt();
        ADD_FAILURE() << "level " << level << " is accepted";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::invalid_argument);
        EXPECT_THAT(error.what(), HasSubstr("levels 1 to 19"));
      }
    };
    refuse([&] { const Encoder encoder(level); });
    refuse([&] { Encoder::needed_bytes(level, mebibyte); });
  }
}

TEST(ChunkCodec, ShuffledWeightsAreSmaller) {
  test::Arbitrary draw(4);
  const Bytes weights = bf16_like(draw, mebibyte);
  const Stored shuffled = encode(weights, 2);
  EXPECT_FALSE(shuffled.raw);
  EXPECT_LT(shuffled.bytes.size(), encode(weights, 1).bytes.size());
}

// What zstd takes for matches in weights costs more than it saves.
TEST(ChunkCodec, LevelOneMakesLessOfWeightsThanZstdByItself) {
  test::Arbitrary draw(14);
  const Bytes weights = bf16_like(draw, mebibyte);
  Bytes shuffled(weights.size());
  shuffle(weights, 2, shuffled);
  Bytes frame(ZSTD_compressBound(weights.size()));
  const std::size_t by_itself =
      ZSTD_compress(frame.data(), frame.size(), shuffled.data(), shuffled.size(), 1);
  ASSERT_FALSE(ZSTD_isError(by_itself));
  EXPECT_LT(encode(weights, 2).bytes.size(), by_itself);
}

// The long ones are found all the same: half of the rows are zeros.
TEST(ChunkCodec, LevelOneStillFindsWhatRepeats) {
  test::Arbitrary draw(15);
  Bytes rows = bf16_like(draw, mebibyte);
  for (std::size_t row = 0; row < 128; row += 2) {
    std::fill_n(rows.begin() + static_cast<std::ptrdiff_t>(row * 8192), 8192, std::byte{0});
  }
  const std::size_t all = encode(bf16_like(draw, mebibyte), 2).bytes.size();
  EXPECT_LT(encode(rows, 2).bytes.size(), all * 55 / 100);
}

TEST(ChunkCodec, WhatDoesNotShrinkIsStoredAsItIs) {
  test::Arbitrary draw(5);
  for (const std::int64_t size : {std::int64_t{0}, std::int64_t{1}, std::int64_t{5000}, mebibyte}) {
    const Bytes random = draw.bytes(size);
    EXPECT_EQ(encode(random), (Stored{random, /*raw=*/true})) << size;
  }
}

// Ever more zeros and random bytes behind them: the frame is the random part and a few bytes.
TEST(ChunkCodec, AFrameSavesAtLeastThreePercent) {
  test::Arbitrary draw(6);
  constexpr std::int64_t size = 10'000;
  std::size_t raw = 0;
  std::size_t largest_frame = 0;
  for (std::int64_t zeros = 200; zeros <= 500; ++zeros) {
    Bytes chunk = draw.bytes(size);
    std::fill(chunk.begin(), chunk.begin() + zeros, std::byte{0});
    const Stored stored = encode(chunk, 1);
    if (stored.raw) {
      ++raw;
    } else {
      largest_frame = std::max(largest_frame, stored.bytes.size());
    }
  }
  EXPECT_GE(raw, 100);  // 2 % of zeros are not enough
  EXPECT_LE(largest_frame, 9700);
  EXPECT_GE(largest_frame, 9690);
}

TEST(ChunkCodec, FramesDependNotOnWhatTheEncoderDidBefore) {
  test::Arbitrary draw(7);
  std::vector<Bytes> chunks;
  for (const std::int64_t size : {1000, 260'000, 17, 70'000, 5000, 140'000}) {
    chunks.push_back(bf16_like(draw, size));
  }
  for (int level = least_level; level <= most_level; level += 6) {
    Encoder used(level);
    for (int round = 0; round < 2; ++round) {
      draw.shuffle(chunks);
      for (const Bytes& chunk : chunks) {
        EXPECT_EQ(encode(used, chunk, 2), encode(chunk, 2, level)) << "level " << level;
      }
    }
  }
}

// The header of a frame, by RFC 8878: the size of the content in 4 bytes behind a window, no
// checksum, no dictionary.
TEST(ChunkCodec, AFrameSaysItsSizeAndNothingElse) {
  test::Arbitrary draw(8);
  const Stored stored = encode(bf16_like(draw, mebibyte));
  ASSERT_FALSE(stored.raw);
  EXPECT_EQ(load<std::uint32_t>(stored.bytes, 0), 0xfd2fb528);
  EXPECT_EQ(stored.bytes[4], std::byte{0x80});
  EXPECT_EQ(load<std::uint32_t>(stored.bytes, 6), mebibyte);
}

// What is taken depends on sizes alone, and equal bytes are quick. At level 4, 128 KiB take more
// than 256 KiB.
TEST(ChunkCodec, NeedsNoMoreMemoryThanItSays) {
  for (int level = least_level; level <= most_level; ++level) {
    for (const std::int64_t most : {std::int64_t{1000}, mebibyte / 4, mebibyte}) {
      Encoder encoder(level);
      for (const std::int64_t size : {most / 50, most / 8, most / 2, most}) {
        encode(encoder, constant(size), 2);
        EXPECT_LE(encoder.held_bytes(), Encoder::needed_bytes(level, most)) << level << ' ' << most;
      }
      EXPECT_GT(encoder.held_bytes() * 4, Encoder::needed_bytes(level, most)) << level;
    }
  }
  Decoder decoder;
  EXPECT_EQ(complaint(decoder, encode(constant(mebibyte)).bytes, mebibyte), "");
  EXPECT_LE(decoder.held_bytes(), Decoder::needed_bytes(mebibyte));
  EXPECT_GT(decoder.held_bytes(), mebibyte);
}

// ---- Hostile frames

TEST(ChunkCodec, AChunkAsItIsMustHaveItsSize) {
  EXPECT_EQ(complaint(constant(100), 100, /*raw=*/true), "");
  EXPECT_EQ(complaint(constant(99), 100, /*raw=*/true),
            "a chunk that is stored as it is has 99 bytes, but must have 100");
}

TEST(ChunkCodec, EveryCutOfAFrameIsDamage) {
  test::Arbitrary draw(10);
  const Stored stored = encode(bf16_like(draw, 3000));
  ASSERT_FALSE(stored.raw);
  Decoder decoder;
  for (std::size_t length = 0; length < stored.bytes.size(); ++length) {
    EXPECT_NE(complaint(decoder, std::span(stored.bytes).first(length), 3000), "") << length;
  }
}

TEST(ChunkCodec, EveryFlippedBitIsDamageOrGivesOtherBytes) {
  test::Arbitrary draw(11);
  const Bytes chunk = bf16_like(draw, 600);
  Stored stored = encode(chunk);
  ASSERT_FALSE(stored.raw);
  Decoder decoder;
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < 8 * stored.bytes.size(); ++bit) {
    const std::byte sound = stored.bytes[bit / 8];
    stored.bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    if (!complaint(decoder, stored.bytes, 600).empty()) ++refused;
    stored.bytes[bit / 8] = sound;
  }
  EXPECT_GE(refused, 32);  // those of the magic at least
  Bytes back(chunk.size());
  decoder.decode(stored.bytes, /*raw=*/false, 2, back);  // no harm is left behind
  EXPECT_EQ(back, chunk);
}

TEST(ChunkCodec, RandomBytesAreDamage) {
  test::Arbitrary draw(12);
  Decoder decoder;
  const Stored sound = encode(constant(3000));
  for (int round = 0; round < 2000; ++round) {
    Bytes bytes = draw.bytes(draw.between(0, 60));
    const auto kept = static_cast<std::size_t>(draw.between(0, 8));
    std::copy_n(sound.bytes.begin(), std::min(kept, bytes.size()), bytes.begin());
    complaint(decoder, bytes, 3000);  // reads nothing beyond them, and raises nothing else
  }
}

TEST(ChunkCodec, AFrameMustHoldAsMuchAsTheChunkHas) {
  const Stored stored = encode(constant(3000));
  for (const std::int64_t size : {0, 2999, 3001}) {
    EXPECT_EQ(complaint(stored.bytes, size),
              "the frame of a chunk says that it holds 3000 bytes, but the chunk has " +
                  std::to_string(size));
  }
}

TEST(ChunkCodec, AFrameThatClaimsMuchTakesNoMemory) {
  Bytes frame = bytes_of({0x28, 0xb5, 0x2f, 0xfd, 0xe0});
  append(frame, std::uint64_t{1} << 50);
  frame.resize(frame.size() + 20);
  Decoder decoder;
  const std::int64_t before = decoder.held_bytes();
  EXPECT_THAT(complaint(decoder, frame, 3000), HasSubstr("holds 1125899906842624 bytes"));
  EXPECT_EQ(decoder.held_bytes(), before);
}

// The header agrees with the chunk, and the blocks do not.
TEST(ChunkCodec, AFrameThatHoldsOtherThanItClaimsIsDamage) {
  Stored stored = encode(constant(3000));
  for (const int claimed : {2900, 3100}) {
    Bytes lying = stored.bytes;
    store(std::span(lying), 5, static_cast<std::uint16_t>(claimed - 256));
    EXPECT_THAT(complaint(lying, claimed), HasSubstr("cannot be read: zstd says")) << claimed;
  }
}

TEST(ChunkCodec, FramesByHandAreRead) {
  EXPECT_EQ(complaint(frame_by_hand(0x20, {4}), 4), "");
  EXPECT_EQ(complaint(frame_by_hand(0x80, {0x00, 4, 0, 0, 0}), 4), "");  // window of 1 KiB
}

TEST(ChunkCodec, AFrameWithoutItsSizeIsDamage) {
  EXPECT_THAT(complaint(frame_by_hand(0x00, {0x00}), 4),
              HasSubstr("does not say how many bytes it holds, but must say 4"));
}

TEST(ChunkCodec, ADictionaryIsDamage) {
  EXPECT_THAT(complaint(frame_by_hand(0x21, {77, 4}), 4), HasSubstr("asks for dictionary 77"));
}

TEST(ChunkCodec, AWindowOfMoreThanEightMebibytesIsDamage) {
  EXPECT_EQ(complaint(frame_by_hand(0x80, {13U << 3, 4, 0, 0, 0}), 4), "");
  EXPECT_THAT(complaint(frame_by_hand(0x80, {14U << 3, 4, 0, 0, 0}), 4),
              HasSubstr("a window of 2^24 bytes, but 2^23"));
}

TEST(ChunkCodec, NothingMayStandBehindTheFrame) {
  const Bytes frame = frame_by_hand(0x20, {4});
  Bytes longer = frame;
  longer.push_back(std::byte{0});
  EXPECT_EQ(complaint(longer, 4), "the frame of a chunk ends after 13 bytes, but 14 are stored");
  Bytes twice = frame;
  twice.insert(twice.end(), frame.begin(), frame.end());
  EXPECT_THAT(complaint(twice, 4), HasSubstr("ends after 13 bytes, but 26 are stored"));
  EXPECT_THAT(complaint(twice, 8), HasSubstr("holds 4 bytes, but the chunk has 8"));
}

TEST(ChunkCodec, SkippableFramesAreDamage) {
  const Bytes skippable = bytes_of({0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 'x', 'y'});
  const Bytes frame = frame_by_hand(0x20, {4});
  Bytes before = skippable;
  before.insert(before.end(), frame.begin(), frame.end());
  Bytes behind = frame;
  behind.insert(behind.end(), skippable.begin(), skippable.end());
  EXPECT_THAT(complaint(skippable, 0), HasSubstr("do not start as a zstd frame does"));
  EXPECT_THAT(complaint(before, 4), HasSubstr("do not start as a zstd frame does"));
  EXPECT_THAT(complaint(behind, 4), HasSubstr("ends after 13 bytes, but 23 are stored"));
}

}  // namespace
}  // namespace remesh::native
