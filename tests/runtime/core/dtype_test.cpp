#include "remesh/core/dtype.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <set>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remesh {
namespace {

struct Expected {
  int value;
  DType dtype;
  int bits;
  std::string_view name;
};

// Written out by hand, since the values are on disk and the names are in every report.
constexpr std::array expected{
    Expected{1, DType::boolean, 8, "bool"},
    Expected{2, DType::f4, 4, "f4"},
    Expected{3, DType::f6_e2m3, 6, "f6_e2m3"},
    Expected{4, DType::f6_e3m2, 6, "f6_e3m2"},
    Expected{5, DType::u8, 8, "u8"},
    Expected{6, DType::i8, 8, "i8"},
    Expected{7, DType::f8_e5m2, 8, "f8_e5m2"},
    Expected{8, DType::f8_e4m3, 8, "f8_e4m3"},
    Expected{9, DType::f8_e8m0, 8, "f8_e8m0"},
    Expected{10, DType::f8_e4m3fnuz, 8, "f8_e4m3fnuz"},
    Expected{11, DType::f8_e5m2fnuz, 8, "f8_e5m2fnuz"},
    Expected{12, DType::i16, 16, "i16"},
    Expected{13, DType::u16, 16, "u16"},
    Expected{14, DType::f16, 16, "f16"},
    Expected{15, DType::bf16, 16, "bf16"},
    Expected{16, DType::i32, 32, "i32"},
    Expected{17, DType::u32, 32, "u32"},
    Expected{18, DType::f32, 32, "f32"},
    Expected{19, DType::c64, 64, "c64"},
    Expected{20, DType::f64, 64, "f64"},
    Expected{21, DType::i64, 64, "i64"},
    Expected{22, DType::u64, 64, "u64"},
};

TEST(DType, KeepsItsValueItsWidthAndItsName) {
  for (const Expected& row : expected) {
    EXPECT_EQ(static_cast<int>(row.dtype), row.value) << row.name;
    EXPECT_EQ(bits(row.dtype), row.bits) << row.name;
    EXPECT_EQ(to_string(row.dtype), row.name);
    EXPECT_EQ(parse_dtype(row.name), row.dtype) << row.name;
  }
}

TEST(DType, AllAreListedOnceInTheOrderOfTheirValues) {
  ASSERT_EQ(all_dtypes().size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(all_dtypes()[i], expected[i].dtype);
}

TEST(DType, NoOtherNameIsRead) {
  for (const std::string_view name : {"", "BF16", "bf16 ", " bf16", "bf", "float32", "boolean",
                                      "F8_E4M3", "f8_e4m3fn", "unknown"}) {
    EXPECT_EQ(parse_dtype(name), std::nullopt) << "'" << name << "'";
  }
}

TEST(DType, AValueThatIsNoDTypeReadsNothingBeyondTheTable) {
  for (const int value : {0, 23, 255}) {
    EXPECT_EQ(bits(static_cast<DType>(value)), 0) << value;
    EXPECT_EQ(to_string(static_cast<DType>(value)), "unknown") << value;
  }
}

}  // namespace
}  // namespace remesh
