#pragma once

#include <cstddef>
#include <span>

#include "number_scan.hpp"

/// @file
/// What kind of numbers floats of one byte are, as count_numbers() has it. Of all dtypes these have
/// the most numbers for each byte that is read.

namespace remesh::detail {

/// How many elements are compared at a time.
enum class Width {
  base,  ///< 16, which every processor of the kind can
  wide,  ///< 32: on x86-64 with AVX2
};

/// What this processor does best.
Width best_width() noexcept;

NumberCounts count_f8_e4m3(std::span<const std::byte> bytes, Width width = best_width()) noexcept;
NumberCounts count_f8_e5m2(std::span<const std::byte> bytes, Width width = best_width()) noexcept;

}  // namespace remesh::detail
