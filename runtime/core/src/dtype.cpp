#include "remesh/core/dtype.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace remesh {
namespace {

struct Row {
  DType dtype;
  int bits;
  std::string_view name;
};

constexpr std::array rows{
    Row{DType::boolean, 8, "bool"},
    Row{DType::f4, 4, "f4"},
    Row{DType::f6_e2m3, 6, "f6_e2m3"},
    Row{DType::f6_e3m2, 6, "f6_e3m2"},
    Row{DType::u8, 8, "u8"},
    Row{DType::i8, 8, "i8"},
    Row{DType::f8_e5m2, 8, "f8_e5m2"},
    Row{DType::f8_e4m3, 8, "f8_e4m3"},
    Row{DType::f8_e8m0, 8, "f8_e8m0"},
    Row{DType::f8_e4m3fnuz, 8, "f8_e4m3fnuz"},
    Row{DType::f8_e5m2fnuz, 8, "f8_e5m2fnuz"},
    Row{DType::i16, 16, "i16"},
    Row{DType::u16, 16, "u16"},
    Row{DType::f16, 16, "f16"},
    Row{DType::bf16, 16, "bf16"},
    Row{DType::i32, 32, "i32"},
    Row{DType::u32, 32, "u32"},
    Row{DType::f32, 32, "f32"},
    Row{DType::c64, 64, "c64"},
    Row{DType::f64, 64, "f64"},
    Row{DType::i64, 64, "i64"},
    Row{DType::u64, 64, "u64"},
};

constexpr std::size_t place_of(DType dtype) { return static_cast<std::size_t>(dtype) - 1; }

constexpr auto list_dtypes() {
  std::array<DType, rows.size()> dtypes{};
  std::ranges::transform(rows, dtypes.begin(), &Row::dtype);
  return dtypes;
}

constexpr auto dtypes = list_dtypes();

constexpr bool each_row_lies_in_its_place() {
  return std::ranges::all_of(rows,
                             [](const Row& row) { return &row == &rows[place_of(row.dtype)]; });
}
static_assert(each_row_lies_in_its_place());

// A value that is no enumerator (a cast from an unchecked byte) must not read past the table.
constexpr Row nothing{DType{}, 0, "unknown"};

const Row& row_of(DType dtype) {
  const std::size_t place = place_of(dtype);
  return place < rows.size() ? rows[place] : nothing;
}

}  // namespace

std::span<const DType> all_dtypes() noexcept { return dtypes; }

int bits(DType dtype) noexcept { return row_of(dtype).bits; }

std::string_view to_string(DType dtype) noexcept { return row_of(dtype).name; }

std::optional<DType> parse_dtype(std::string_view name) noexcept {
  const auto* const row = std::ranges::find(rows, name, &Row::name);
  if (row == rows.end()) return std::nullopt;
  return row->dtype;
}

}  // namespace remesh
