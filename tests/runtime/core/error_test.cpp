#include "remesh/core/error.hpp"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remesh {
namespace {

using ::testing::StrEq;

TEST(Error, CarriesItsCodeItsMessageAndItsId) {
  const Error error(Errc::corrupt, "cannot read 'a': it is cut short", "RM202");
  EXPECT_EQ(error.code(), Errc::corrupt);
  EXPECT_THAT(error.what(), StrEq("cannot read 'a': it is cut short"));
  EXPECT_EQ(error.id(), "RM202");
  EXPECT_EQ(Error(Errc::io, "no id").id(), "");
}

// The values are an ABI and the names stand in JSON, so both are written out here once more.
TEST(Errc, KeepsItsValuesAndItsNames) {
  constexpr std::array names{
      std::pair{1, "invalid_argument"}, std::pair{2, "not_found"},   std::pair{3, "corrupt"},
      std::pair{4, "incomplete"},       std::pair{5, "unsupported"}, std::pair{6, "io"},
      std::pair{7, "out_of_memory"},    std::pair{8, "transport"},   std::pair{9, "peer"},
      std::pair{10, "exists"},          std::pair{11, "busy"},       std::pair{12, "unsafe"},
      std::pair{13, "internal"},        std::pair{14, "stopped"}};
  for (const auto& [value, name] : names) {
    EXPECT_THAT(to_string(static_cast<Errc>(value)), StrEq(name)) << value;
  }
}

TEST(Errc, AValueOutsideTheListHasANameToo) {
  EXPECT_THAT(to_string(static_cast<Errc>(0)), StrEq("unknown"));
  EXPECT_THAT(to_string(static_cast<Errc>(15)), StrEq("unknown"));
}

}  // namespace
}  // namespace remesh
