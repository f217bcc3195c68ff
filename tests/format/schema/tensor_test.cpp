#include "remesh/schema/tensor.hpp"

#include <gtest/gtest.h>

namespace remesh {
namespace {

TEST(NumBytes, CountsPackedElements) {
  struct Row {
    DType dtype;
    Box box;
    std::int64_t bytes;
  };
  // clang-format off
  const Row rows[] = {
      {DType::bf16,    Box{{0, 3}, {2, 7}},  30},
      {DType::boolean, Box{{0, 3}, {2, 7}},  15},
      {DType::c64,     Box{},                 8},
      {DType::f64,     Box{{0, 0}, {0, 9}},   0},
      {DType::f4,      Box{{0, 3}, {0, 2}},   3},
      {DType::f6_e2m3, Box{{0, 3}, {0, 4}},   9},
      {DType::u8,      Box{{0, 3'000'000'000}, {0, 2}}, 6'000'000'000},
  };
  // clang-format on
  for (const Row& row : rows) {
    EXPECT_EQ(num_bytes(row.dtype, row.box), row.bytes)
        << to_string(row.dtype) << ' ' << to_string(row.box);
  }
}

TEST(NumBytes, OfATensorIsThatOfItsExtent) {
  EXPECT_EQ(num_bytes(TensorDesc{"w", DType::f32, Box{{0, 3}, {0, 5}}}), 60);
}

TEST(Tensor, IsNamedWithDtypeAndExtent) {
  EXPECT_EQ(to_string(TensorDesc{"model.norm.weight", DType::bf16, Box{{0, 64}}}),
            "'model.norm.weight' (bf16, [0, 64))");
  EXPECT_EQ(to_string(TensorDesc{"step", DType::i64, Box{}}), "'step' (i64, scalar)");
}

}  // namespace
}  // namespace remesh
