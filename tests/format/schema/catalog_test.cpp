#include "remesh/schema/catalog.hpp"

#include <gtest/gtest.h>

namespace remesh {
namespace {

Catalog three_tensors() {
  Catalog catalog;
  catalog.tensors = {{"a.weight", DType::bf16, Box{{0, 3}, {0, 5}}},
                     {"a.weight@exp_avg", DType::f32, Box{{0, 3}, {0, 5}}},
                     {"step", DType::i64, Box{}}};
  return catalog;
}

TEST(Catalog, FindsATensorByItsWholeName) {
  const Catalog catalog = three_tensors();
  EXPECT_EQ(catalog.find("a.weight"), 0U);
  EXPECT_EQ(catalog.find("a.weight@exp_avg"), 1U);
  EXPECT_EQ(catalog.find("step"), 2U);
  EXPECT_EQ(catalog.find("a.weigh"), std::nullopt);
  EXPECT_EQ(catalog.find(""), std::nullopt);
}

TEST(Catalog, CountsThePayloadOfEachTensorOnce) {
  Catalog catalog = three_tensors();
  catalog.layout = Layout::replicated(Mesh({{"dp", 4}}), 3);
  EXPECT_EQ(payload_bytes(catalog), 3 * 5 * 2 + 3 * 5 * 4 + 8);
  EXPECT_EQ(payload_bytes(Catalog{}), 0);
}

}  // namespace
}  // namespace remesh
