#include "remesh/core/buffer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remesh/core/error.hpp"

// A sanitizer's allocator ends the process where there is no memory, unless it is told otherwise.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace remesh {
namespace {

static_assert(!std::is_copy_constructible_v<Buffer> && !std::is_copy_assignable_v<Buffer>);

TEST(Buffer, HoldsTheBytesAskedForOnPageBoundaries) {
  for (const std::int64_t size : {1, 4095, 4096, 4097, 1'000'000}) {
    Buffer buffer(size);
    EXPECT_EQ(buffer.size_bytes(), size);
    ASSERT_EQ(buffer.bytes().size(), static_cast<std::size_t>(size));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.bytes().data()) % 4096, 0U) << size;
    std::ranges::fill(buffer.bytes(), std::byte{0x5a});
    EXPECT_EQ(std::as_const(buffer).bytes().back(), std::byte{0x5a});
  }
}

TEST(Buffer, OfNoBytesIsEmpty) {
  EXPECT_EQ(Buffer().size_bytes(), 0);
  EXPECT_TRUE(Buffer().bytes().empty());
  EXPECT_TRUE(Buffer(0).bytes().empty());
}

TEST(Buffer, MovesAndLeavesAnEmptyOneBehind) {
  Buffer first(100);
  const std::byte* const data = first.bytes().data();
  Buffer second(std::move(first));
  EXPECT_EQ(second.bytes().data(), data);
  EXPECT_EQ(second.size_bytes(), 100);
  EXPECT_TRUE(first.bytes().empty());  // NOLINT(bugprone-use-after-move): that is the contract

  Buffer third(7);
  third = std::move(second);
  EXPECT_EQ(third.bytes().data(), data);
  EXPECT_EQ(third.size_bytes(), 100);
  EXPECT_TRUE(second.bytes().empty());  // NOLINT(bugprone-use-after-move)

  auto& same = third;
  third = std::move(same);
  EXPECT_EQ(third.bytes().data(), data);
  EXPECT_EQ(third.size_bytes(), 100);
}

TEST(Buffer, MoreThanTheMachineHasIsAnError) {
  try {
    const Buffer buffer(std::int64_t{1} << 62);
    FAIL() << "allocated 4 EiB";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::out_of_memory);
    EXPECT_THAT(error.what(), testing::StrEq("cannot allocate a buffer of 4611686018427387904 "
                                             "bytes: the system has no memory left"));
  }
}

}  // namespace
}  // namespace remesh
