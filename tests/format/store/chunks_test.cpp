#include "remesh/store/chunks.hpp"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "remesh/schema/runs.hpp"
#include "seeds.hpp"

namespace remesh {
namespace {

Extent extent_of(DType dtype, const Box& box, ChunkRule rule) {
  Extent extent;
  extent.box = box;
  extent.length_bytes = num_bytes(dtype, box);
  extent.chunk_dim = rule.dim;
  extent.chunk_size = rule.size;
  return extent;
}

TEST(ChunkRule, TakesWholeRowsUpToABlock) {
  EXPECT_EQ(chunk_rule(DType::f32, Box{{0, 1}}), (ChunkRule{0, 1}));
  EXPECT_EQ(chunk_rule(DType::bf16, Box{{0, 4096}, {0, 1024}}), (ChunkRule{0, 512}));
  EXPECT_EQ(chunk_rule(DType::bf16, Box{{0, 513}, {0, 1024}}), (ChunkRule{0, 257}))
      << "two chunks, as equal as can be";
  EXPECT_EQ(chunk_rule(DType::bf16, Box{{8, 16}, {0, 4096}, {0, 1024}}), (ChunkRule{1, 512}))
      << "one matrix is too large: its rows";
  EXPECT_EQ(chunk_rule(DType::u8, Box{{0, 3}, {0, (1 << 20) + 1}}), (ChunkRule{1, 524'289}))
      << "one row is too large: parts of it";
  EXPECT_EQ(chunk_rule(DType::u8, Box{{0, 3}, {0, 1 << 20}}), (ChunkRule{0, 1}));
}

// Chunks by the book: the elements of the box in row-major order, each asked in which chunk it is.
TEST(Chunks, FollowEachOtherInTheOrderOfElements) {
  for (unsigned seed = 0; seed < test::num_seeds(300); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto draw = [&](Index most) {
      return std::uniform_int_distribution<Index>(1, most)(random);
    };
    Box box = Box::of_ndim(static_cast<std::size_t>(draw(4)));
    for (int dim = 0; dim < box.ndim(); ++dim) {
      const Index begin = draw(5) - 1;
      box[dim] = {begin, begin + draw(6)};
    }
    const int dim = static_cast<int>(draw(box.ndim())) - 1;
    const DType dtype = draw(2) == 1 ? DType::bf16 : DType::f32;
    const Extent extent = extent_of(dtype, box, {dim, draw(box[dim].size())});
    const std::int64_t width = bits(dtype) / 8;

    std::int64_t next = 0;
    for (std::int64_t k = 0; k < num_chunks(extent); ++k) {
      const Box chunk = chunk_box(extent, k);
      ASSERT_EQ(chunk_range(dtype, extent, k),
                (ByteRange{next, next + chunk.num_elements() * width}));
      ASSERT_LE(chunk.num_elements() * width, whole_chunk_bytes(dtype, extent));
      for (Index element = 0; element < chunk.num_elements(); ++element) {
        const auto number = next / width + element;
        ASSERT_EQ(element_of(chunk, element), element_of(box, number));
        ASSERT_EQ(chunk_at(dtype, extent, number * width), k);
      }
      next += chunk.num_elements() * width;
    }
    ASSERT_EQ(next, extent.length_bytes) << "chunks make up the box";
  }
}

TEST(ChunkRule, CutsAnyBoxIntoChunksOfAtMostABlock) {
  for (unsigned seed = 0; seed < test::num_seeds(300); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Box box = Box::of_ndim(std::uniform_int_distribution<std::size_t>(1, 4)(random));
    for (int dim = 0; dim < box.ndim(); ++dim) {
      box[dim] = {0, Index{1} << std::uniform_int_distribution<int>(0, 11)(random)};
      box[dim].end += std::uniform_int_distribution<Index>(0, 3)(random);
    }
    const Extent extent = extent_of(DType::f64, box, chunk_rule(DType::f64, box));
    EXPECT_LE(whole_chunk_bytes(DType::f64, extent), most_chunk_bytes);
    EXPECT_EQ(chunk_range(DType::f64, extent, num_chunks(extent) - 1).end, extent.length_bytes);
    if (extent.chunk_size < box[extent.chunk_dim].size()) {
      EXPECT_GE(2 * whole_chunk_bytes(DType::f64, extent), most_chunk_bytes / 2) << to_string(box);
    }
  }
}

TEST(Chunks, CountThoseSideBySide) {
  const std::vector<TensorDesc> tensors{{"rows", DType::bf16, Box{{0, 8}, {0, 4}}},
                                        {"columns", DType::bf16, Box{{0, 4}, {0, 9}}},
                                        {"plain", DType::bf16, Box{{0, 4}, {0, 90}}}};
  std::vector<Extent> extents;
  std::vector<Frame> frames;
  const auto add = [&](std::uint32_t tensor, const Box& box, std::uint32_t copy) {
    Extent extent = extent_of(DType::bf16, box, {0, 2});
    extent.tensor = tensor;
    extent.copy = copy;
    extent.first_frame = std::ssize(frames);
    frames.resize(frames.size() + static_cast<std::size_t>(num_chunks(extent)));
    extents.push_back(extent);
  };
  add(0, Box{{0, 4}, {0, 4}}, 0);
  add(0, Box{{4, 8}, {0, 4}}, 0);
  EXPECT_EQ(most_bytes_side_by_side({{{"f", 0}}, extents, {}, {}, frames}, 3), most_chunk_bytes)
      << "one chunk has all of a row";
  for (const Index column : {0, 3, 6}) add(1, Box{{0, 4}, {column, column + 3}}, 0);
  for (const Index column : {0, 3, 6}) add(1, Box{{0, 4}, {column, column + 3}}, 1);
  EXPECT_EQ(most_bytes_side_by_side({{{"f", 0}}, extents, {}, {}, frames}, 3), 3 * most_chunk_bytes)
      << "copies are not read";
  Extent plain;
  plain.tensor = 2;
  plain.box = tensors[2].extent;
  plain.length_bytes = 4 * 90 * 2;
  extents.push_back(plain);
  EXPECT_EQ(most_bytes_side_by_side({{{"f", 0}}, extents, {}, {}, frames}, 3), 3 * most_chunk_bytes)
      << "what is not in chunks is not kept";
  EXPECT_EQ(most_bytes_side_by_side({{{"f", 0}}, {plain}}, 3), 0);
}

}  // namespace
}  // namespace remesh
