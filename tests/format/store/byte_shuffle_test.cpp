#include "byte_shuffle.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "arbitrary.hpp"

namespace remesh::native {
namespace {

using Bytes = std::vector<std::byte>;

// As HDF5 describes its filter: byte b of element e goes to b * elements + e; what is no whole
// element stays.
Bytes shuffled_by_the_book(const Bytes& plain, std::size_t element_bytes) {
  Bytes shuffled = plain;
  const std::size_t elements = plain.size() / element_bytes;
  for (std::size_t at = 0; at < elements * element_bytes; ++at) {
    shuffled[at % element_bytes * elements + at / element_bytes] = plain[at];
  }
  return shuffled;
}

void expect_shuffles(const Bytes& plain, std::size_t element_bytes) {
  SCOPED_TRACE(::testing::Message() << plain.size() << " bytes in elements of " << element_bytes);
  Bytes shuffled(plain.size());
  shuffle(plain, element_bytes, shuffled);
  ASSERT_EQ(shuffled, shuffled_by_the_book(plain, element_bytes));
  Bytes back(plain.size());
  unshuffle(shuffled, element_bytes, back);
  ASSERT_EQ(back, plain);
}

TEST(ByteShuffle, PutsEqualBytesOfElementsTogether) {
  const Bytes plain{std::byte{0x11}, std::byte{0x12}, std::byte{0x21}, std::byte{0x22},
                    std::byte{0x31}};
  Bytes shuffled(plain.size());
  shuffle(plain, 2, shuffled);
  EXPECT_EQ(shuffled, (Bytes{std::byte{0x11}, std::byte{0x21}, std::byte{0x12}, std::byte{0x22},
                             std::byte{0x31}}));
}

TEST(ByteShuffle, OfEveryLengthIsThatOfTheBookAndGoesBack) {
  test::Arbitrary draw(1);
  const Bytes plain = draw.bytes(600);
  for (const std::size_t element_bytes : {1U, 2U, 3U, 4U, 5U, 7U, 8U, 16U, 31U}) {
    for (std::size_t size = 0; size <= plain.size(); ++size) {
      expect_shuffles(Bytes(plain.begin(), plain.begin() + static_cast<std::ptrdiff_t>(size)),
                      element_bytes);
    }
  }
}

TEST(ByteShuffle, OfAWholeChunkIsThatOfTheBook) {
  test::Arbitrary draw(2);
  const Bytes plain = draw.bytes((std::int64_t{1} << 20) + 5);
  for (const std::size_t element_bytes : {1U, 2U, 3U, 4U, 8U})
    expect_shuffles(plain, element_bytes);
}

TEST(ByteShuffle, OfAnyAlignmentIsTheSame) {
  test::Arbitrary draw(3);
  const Bytes plain = draw.bytes(400);
  for (const std::size_t element_bytes : {2U, 4U, 8U}) {
    const Bytes wanted = shuffled_by_the_book(plain, element_bytes);
    for (std::size_t skip = 0; skip < 16; ++skip) {
      Bytes from(skip);
      from.insert(from.end(), plain.begin(), plain.end());
      Bytes to(plain.size() + 16 - skip);
      const auto shuffled = std::span(to).subspan(16 - skip);
      shuffle(std::span(from).subspan(skip), element_bytes, shuffled);
      EXPECT_EQ(Bytes(shuffled.begin(), shuffled.end()), wanted) << element_bytes << ", " << skip;
    }
  }
}

}  // namespace
}  // namespace remesh::native
