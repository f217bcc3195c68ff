#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "number_scan.hpp"

/// @file
/// The kinds of floats by their bits, and what every way to count them needs.

namespace remesh::detail {

static_assert(std::endian::native == std::endian::little, "elements are read as they lie");

/// The k-th element.
template <typename Word>
Word load_word(std::span<const std::byte> bytes, std::size_t k) noexcept {
  Word word;
  std::memcpy(&word, bytes.data() + k * sizeof word, sizeof word);
  return word;
}

/// The number of the first element that it is true of.
template <typename Word, typename Predicate>
Index first_of(std::span<const std::byte> bytes, Predicate is) noexcept {
  const std::size_t count = bytes.size() / sizeof(Word);
  for (std::size_t k = 0; k < count; ++k) {
    if (is(load_word<Word>(bytes, k))) return static_cast<Index>(k);
  }
  return NumberCounts::nowhere;
}

/// A kind of float. A `finite` one has a NaN where others have their largest NaN, and no infinity.
template <typename Unsigned, int exponent, int fraction, bool finite = false>
struct Kind {
  using Word = Unsigned;
  static constexpr int fraction_bits = fraction;
  static constexpr int band_shift = exponent - 3;
  static constexpr std::size_t most_field = (std::size_t{1} << exponent) - 1;
  static constexpr std::size_t num_tops = std::size_t{2} << exponent;  // sign and exponent
  static constexpr Word sign = static_cast<Word>(Word{1} << (exponent + fraction));
  static constexpr Word all = static_cast<Word>(sign - 1);
  static constexpr Word infinity = static_cast<Word>(all >> fraction << fraction);
  static constexpr Word first_beyond = finite ? all : infinity;

  static bool is_zero(Word word) noexcept { return (word & all) == 0; }
  static bool is_minus_zero(Word word) noexcept { return word == sign; }
  static bool is_not_finite(Word word) noexcept { return (word & all) >= first_beyond; }
  static bool is_infinite(Word word) noexcept { return !finite && (word & all) == infinity; }
  static bool is_minus_nan(Word word) noexcept {
    return word >= (sign | first_beyond) && !is_infinite(word);
  }
  static bool is_negative(Word word) noexcept { return word > sign && !is_minus_nan(word); }
};

/// Adds so many elements that are finite and not zero, and have this exponent's field.
template <typename K>
void add_finite(NumberCounts& counts, std::size_t field, Index elements) noexcept {
  if (elements == 0) return;
  counts.bands[field >> K::band_shift] += elements;
  counts.least_exponent = std::min(counts.least_exponent, static_cast<int>(field));
  counts.most_exponent = std::max(counts.most_exponent, static_cast<int>(field));
}

/// Adds what was counted of elements that are numbered from `first` on.
inline void add_from(NumberCounts& sum, NumberCounts part, std::size_t first) noexcept {
  for (Index* const place : {&part.first_not_finite, &part.first_negative}) {
    if (*place != NumberCounts::nowhere) *place += static_cast<Index>(first);
  }
  add(sum, part);
}

}  // namespace remesh::detail
