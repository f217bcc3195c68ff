#include "groups.hpp"

#include <string>

#include <gtest/gtest.h>

#include "remesh/core/error.hpp"
#include "remesh/schema/layout.hpp"

namespace remesh {
namespace {

Layout layout_of_heads() {
  const Split heads{.dim = 0, .over = {"tp"}, .groups = 12, .unit = "attention heads"};
  const Split shared{.dim = 0, .over = {"tp"}, .groups = 4, .beyond = Beyond::share};
  return {Mesh(), {{{heads}, {}}, {{shared}, {}}}, {{0, -1}, {1, -1}}, {}};
}

std::string refusal(Index tp) {
  try {
    layout_of_heads().on(Mesh({{"tp", tp}}));
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    return error.what();
  }
}

TEST(Groups, AMeshThatDividesThemAllIsLegal) {
  for (const Index legal : {1, 2, 4, 12}) EXPECT_EQ(refusal(legal), "");
}

TEST(Groups, AnyOtherIsRefusedWithTheNearestThatWouldDoForAll) {
  EXPECT_EQ(
      refusal(5),
      "cannot place the model on tp=5: it has 12 attention heads, which 5 does not divide; the "
      "nearest legal values are tp=4 and tp=12");
  EXPECT_EQ(refusal(3),
            "cannot place the model on tp=3: it has 4 groups, and 3 neither divides 4 nor is a "
            "multiple of it; the nearest legal values are tp=2 and tp=4");
}

}  // namespace
}  // namespace remesh
