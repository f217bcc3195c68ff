#include "remesh/schema/runs.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arbitrary.hpp"
#include "numbered_tensor.hpp"
#include "remesh/core/error.hpp"

namespace remesh {

void PrintTo(const Run& run, std::ostream* out) {
  *out << "{tensor " << run.tensor_bytes << ", packed " << run.packed_bytes << ", length "
       << run.length_bytes << '}';
}

namespace {

using ::testing::ElementsAre;

std::vector<Run> runs_of(const ByteView& view, std::int64_t begin, std::int64_t end) {
  std::vector<Run> runs;
  for_each_run(view, begin, end, [&](const Run& run) { runs.push_back(run); });
  return runs;
}

// `inner` as seen from the first element of `outer`.
Box relative(const Box& outer, const Box& inner) {
  Box moved = inner;
  for (int dim = 0; dim < outer.ndim(); ++dim) {
    moved[dim] = {inner[dim].begin - outer[dim].begin, inner[dim].end - outer[dim].begin};
  }
  return moved;
}

// For each element of `inner`, in order, its place among the elements of `outer`.
std::vector<Index> places(const Box& outer, const Box& inner) {
  std::vector<Index> all;
  test::for_each_element(relative(outer, outer), relative(outer, inner),
                         [&](Index place) { all.push_back(place); });
  return all;
}

TensorDesc any_wide_tensor(test::Arbitrary& arbitrary) {
  TensorDesc desc = arbitrary.tensor("w");
  while (bits(desc.dtype) % 8 != 0) desc = arbitrary.tensor("w");
  return desc;
}

// A box around `inner`, inside `extent`.
Box any_box_around(test::Arbitrary& arbitrary, const Box& extent, const Box& inner) {
  Box outer = inner;
  for (int dim = 0; dim < inner.ndim(); ++dim) {
    if (arbitrary.chance(40)) continue;
    outer[dim] = {arbitrary.between(0, inner[dim].begin),
                  arbitrary.between(inner[dim].end, extent[dim].end)};
  }
  return outer;
}

TEST(ByteView, LeavesWideElementsAsTheyAre) {
  const ByteView view = byte_view({"w", DType::bf16, Box{{0, 8}, {0, 3}}}, Box{{2, 4}, {1, 3}});
  EXPECT_EQ(view.extent, (Box{{0, 8}, {0, 3}}));
  EXPECT_EQ(view.box, (Box{{2, 4}, {1, 3}}));
  EXPECT_EQ(view.element_bytes, 2);
}

TEST(ByteView, CountsTheRowsOfNarrowElementsInBytes) {
  const TensorDesc f4{"w", DType::f4, Box{{0, 3}, {0, 8}}};
  EXPECT_EQ(byte_view(f4, Box{{1, 2}, {2, 8}}).extent, (Box{{0, 3}, {0, 4}}));
  EXPECT_EQ(byte_view(f4, Box{{1, 2}, {2, 8}}).box, (Box{{1, 2}, {1, 4}}));

  const TensorDesc f6{"w", DType::f6_e2m3, Box{{0, 3}, {0, 8}}};
  EXPECT_EQ(byte_view(f6, Box{{0, 3}, {4, 8}}).extent, (Box{{0, 3}, {0, 6}}));
  EXPECT_EQ(byte_view(f6, Box{{0, 3}, {4, 8}}).box, (Box{{0, 3}, {3, 6}}));
  EXPECT_EQ(byte_view(f6, Box{{0, 3}, {4, 8}}).element_bytes, 1);
}

TEST(ByteView, OfRowsThatAreNoWholeBytesIsOneDimAndOnlyTheWhole) {
  const TensorDesc odd{"w", DType::f4, Box{{0, 6}, {0, 3}}};
  EXPECT_EQ(byte_view(odd, odd.extent).extent, (Box{{0, 9}}));
  EXPECT_EQ(byte_view(odd, odd.extent).box, (Box{{0, 9}}));
  EXPECT_THROW(byte_view(odd, Box{{0, 2}, {0, 3}}), Error) << "even where its bytes are whole";
}

TEST(ByteView, RefusesABorderWithinAByte) {
  const TensorDesc f4{"w", DType::f4, Box{{0, 3}, {0, 8}}};
  try {
    byte_view(f4, Box{{0, 3}, {3, 8}});
    FAIL() << "cut a byte";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::unsupported);
    EXPECT_STREQ(error.what(),
                 "cannot cut 'w' (f4, [0, 3) x [0, 8)) at [0, 3) x [3, 8): its elements have 4 "
                 "bits, and a border of the box is no whole byte");
  }
}

TEST(ForEachRun, OfAScalarIsItsElement) {
  EXPECT_THAT(runs_of({Box{}, Box{}, 4}, 0, 4), ElementsAre(remesh::Run{0, 0, 4}));
  EXPECT_THAT(runs_of({Box{}, Box{}, 4}, 1, 3), ElementsAre(remesh::Run{1, 1, 2}));
}

// Rows of 8 bf16 are 16 bytes; columns [2, 5) of them 6.
TEST(ForEachRun, GoesRowByRowThroughAColumnBlock) {
  const ByteView view{Box{{0, 4}, {0, 8}}, Box{{1, 4}, {2, 5}}, 2};
  EXPECT_THAT(runs_of(view, 0, 18),
              ElementsAre(remesh::Run{20, 0, 6}, remesh::Run{36, 6, 6}, remesh::Run{52, 12, 6}));
  EXPECT_THAT(runs_of(view, 4, 13),
              ElementsAre(remesh::Run{24, 4, 2}, remesh::Run{36, 6, 6}, remesh::Run{52, 12, 1}));
}

TEST(ForEachRun, JoinsRowsThatLieTogether) {
  EXPECT_THAT(runs_of({Box{{0, 4}, {0, 8}}, Box{{1, 3}, {0, 8}}, 2}, 0, 32),
              ElementsAre(remesh::Run{16, 0, 32}));
}

// Byte by byte, with no idea of runs.
TEST(ForEachRun, GivesTheMaximalRunsOfAnyBytesOfAnyBox) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Arbitrary arbitrary(seed);
    const TensorDesc desc = any_wide_tensor(arbitrary);
    const Box box = arbitrary.part(desc);
    const std::int64_t width = bits(desc.dtype) / 8;
    const std::int64_t begin = arbitrary.between(0, box.num_elements() * width);
    const std::int64_t end = arbitrary.between(begin, box.num_elements() * width);

    std::vector<remesh::Run> expected;
    const std::vector<Index> place = places(desc.extent, box);
    for (std::int64_t at = begin; at < end; ++at) {
      const std::int64_t in_tensor =
          place[static_cast<std::size_t>(at / width)] * width + at % width;
      if (!expected.empty() &&
          expected.back().tensor_bytes + expected.back().length_bytes == in_tensor) {
        ++expected.back().length_bytes;
      } else {
        expected.push_back({in_tensor, at, 1});
      }
    }
    ASSERT_EQ(runs_of({desc.extent, box, width}, begin, end), expected)
        << to_string(box) << " of " << to_string(desc);
  }
}

TEST(ContiguousIn, AreRowsOfTheirFullWidth) {
  const Box outer{{2, 6}, {0, 8}};
  EXPECT_EQ(contiguous_in(outer, Box{{3, 5}, {0, 8}}, 2), 16);
  EXPECT_EQ(contiguous_in(outer, Box{{3, 4}, {5, 7}}, 2), 26) << "part of one row";
  EXPECT_EQ(contiguous_in(outer, Box{{3, 5}, {0, 7}}, 2), std::nullopt);
  EXPECT_EQ(contiguous_in(Box(), Box(), 8), 0);
}

TEST(ContiguousIn, AgreesWithThePlacesOfTheElements) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Arbitrary arbitrary(seed);
    const TensorDesc desc = any_wide_tensor(arbitrary);
    const Box inner = arbitrary.part(desc);
    if (inner.empty()) continue;
    const Box outer = any_box_around(arbitrary, desc.extent, inner);

    const std::vector<Index> place = places(outer, inner);
    const bool together = place.back() - place.front() + 1 == std::ssize(place);
    const auto found = contiguous_in(outer, inner, 4);
    ASSERT_EQ(found.has_value(), together) << to_string(inner) << " in " << to_string(outer);
    if (together) {
      ASSERT_EQ(*found, place.front() * 4);
    }
  }
}

TEST(CopyBox, MovesEachElementOfThePartAndNoOther) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Arbitrary arbitrary(seed);
    const TensorDesc desc = any_wide_tensor(arbitrary);
    const Box part = arbitrary.part(desc);
    const Box from_box = any_box_around(arbitrary, desc.extent, part);
    const Box to_box = any_box_around(arbitrary, desc.extent, part);
    const std::int64_t width = bits(desc.dtype) / 8;
    const std::vector<std::byte> from = arbitrary.bytes(from_box.num_elements() * width);
    std::vector<std::byte> to = arbitrary.bytes(to_box.num_elements() * width);

    std::vector<std::byte> expected = to;
    const std::vector<Index> source = places(from_box, part);
    const std::vector<Index> target = places(to_box, part);
    for (std::size_t k = 0; k < source.size(); ++k) {
      std::copy_n(from.begin() + source[k] * width, width, expected.begin() + target[k] * width);
    }
    copy_box(part, from_box, from.data(), to_box, to.data(), width);
    ASSERT_EQ(to, expected) << to_string(part) << " from " << to_string(from_box) << " to "
                            << to_string(to_box);
  }
}

}  // namespace
}  // namespace remesh
