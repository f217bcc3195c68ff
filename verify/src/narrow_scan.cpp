#include "narrow_scan.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "float_kind.hpp"

namespace remesh::detail {
namespace {

using ByteSums = std::array<Index, 256>;

// So many elements of the same bits.
template <typename K>
void add_equal(NumberCounts& counts, typename K::Word word, Index times) noexcept {
  if (K::is_negative(word)) counts.negatives += times;
  if (K::is_zero(word)) {
    counts.zeros += times;
  } else if (K::is_not_finite(word)) {
    (K::is_infinite(word) ? counts.infinities : counts.nans) += times;
  } else {
    const auto field = static_cast<std::size_t>((word & K::all) >> K::fraction_bits);
    if (field == 0) counts.denormals += times;
    add_finite<K>(counts, field, times);
  }
}

// Any elements: how often each byte is there, and what each is need be asked once. One at a time.
template <typename K>
NumberCounts count_any(std::span<const std::byte> bytes) noexcept {
  using Word = typename K::Word;
  ByteSums sums{};
  for (const std::byte byte : bytes) ++sums[std::to_integer<std::size_t>(byte)];
  NumberCounts counts;
  counts.elements = static_cast<Index>(bytes.size());
  for (std::size_t value = 0; value < sums.size(); ++value) {
    add_equal<K>(counts, static_cast<Word>(value), sums[value]);
  }
  if (counts.nans + counts.infinities > 0) {
    counts.first_not_finite = first_of<Word>(bytes, K::is_not_finite);
  }
  if (counts.negatives > 0) counts.first_negative = first_of<Word>(bytes, K::is_negative);
  return counts;
}

// As many elements as are taken at a time, as signed numbers, which processors compare best.
template <std::size_t width>
struct Vectors {
  using Signed [[gnu::vector_size(width)]] = std::int8_t;
  using Unsigned [[gnu::vector_size(width)]] = std::uint8_t;
};

constexpr std::size_t base_width = 16;  // what every processor of the kind takes
constexpr std::size_t wide_width = 32;

// By which magnitudes the elements of a kind are told apart, as the bits have them: below the
// first are zeros, below the second denormals, and bands begin at the others.
template <typename K>
constexpr std::array<std::int8_t, 1 + NumberCounts::num_bands> limits = [] {
  std::array<std::int8_t, 1 + NumberCounts::num_bands> all{1, 1 << K::fraction_bits};
  for (std::size_t band = 1; band < NumberCounts::num_bands; ++band) {
    all[1 + band] = static_cast<std::int8_t>(band << (K::band_shift + K::fraction_bits));
  }
  return all;
}();

// What whole vectors of elements have.
struct Magnitudes {
  std::array<Index, 1 + NumberCounts::num_bands> at_least{};  // each of the limits
  Index negatives = 0;                                        // -0 is none
  std::uint8_t below_least = 0xff;                            // one less than what is not zero
  std::uint8_t most = 0;
};

// Inlined into functions for one width each. A sum of bytes takes 255 vectors.
template <typename K, std::size_t width, std::size_t... k>
[[gnu::always_inline]] inline void find_magnitudes(std::span<const std::byte> bytes,
                                                   std::index_sequence<k...> /*limits*/,
                                                   Magnitudes& all) noexcept {
  using Signed = typename Vectors<width>::Signed;
  using Unsigned = typename Vectors<width>::Unsigned;
  constexpr std::size_t most_bytes = 255 * width;
  Unsigned least = ~Unsigned{};
  Unsigned most{};
  for (std::size_t begin = 0; begin < bytes.size();) {
    const std::size_t end = std::min(bytes.size(), begin + most_bytes);
    std::array<Unsigned, sizeof...(k)> at_least{};
    Unsigned negatives{};
    for (; begin < end; begin += width) {
      Signed elements;
      std::memcpy(&elements, bytes.data() + begin, width);
      const Signed sizes = elements & static_cast<std::int8_t>(K::all);
      // True is -1, or 255.
      ((at_least[k] -=
        reinterpret_cast<Unsigned>(sizes > static_cast<std::int8_t>(limits<K>[k] - 1))),
       ...);
      negatives -= reinterpret_cast<Unsigned>((elements < 0) & (sizes > 0));
      const auto below = reinterpret_cast<Unsigned>(sizes - 1);  // so zeros are the greatest of all
      least = below < least ? below : least;
      const auto unsigned_sizes = reinterpret_cast<Unsigned>(sizes);
      most = unsigned_sizes > most ? unsigned_sizes : most;
    }
    for (std::size_t lane = 0; lane < width; ++lane) {
      ((all.at_least[k] += at_least[k][lane]), ...);
      all.negatives += negatives[lane];
    }
  }
  for (std::size_t lane = 0; lane < width; ++lane) {
    all.below_least = std::min(all.below_least, least[lane]);
    all.most = std::max(all.most, most[lane]);
  }
}

template <typename K>
constexpr auto all_limits = std::make_index_sequence<limits<K>.size()>();

template <typename K>
void find_in_base(std::span<const std::byte> bytes, Magnitudes& all) noexcept {
  find_magnitudes<K, base_width>(bytes, all_limits<K>, all);
}

#if defined(__x86_64__)
template <typename K>
[[gnu::target("avx2")]] void find_in_wide(std::span<const std::byte> bytes,
                                          Magnitudes& all) noexcept {
  find_magnitudes<K, wide_width>(bytes, all_limits<K>, all);
}
#else
template <typename K>
void find_in_wide(std::span<const std::byte> bytes, Magnitudes& all) noexcept {
  find_magnitudes<K, wide_width>(bytes, all_limits<K>, all);
}
#endif

// A block of whole vectors, by comparing whole vectors; where not all of it is finite, as any.
template <typename K>
NumberCounts count_block(std::span<const std::byte> bytes, Width width) noexcept {
  Magnitudes found;
  width == Width::wide ? find_in_wide<K>(bytes, found) : find_in_base<K>(bytes, found);
  if (found.most >= K::first_beyond) return count_any<K>(bytes);
  NumberCounts counts;
  counts.elements = static_cast<Index>(bytes.size());
  counts.zeros = counts.elements - found.at_least[0];
  counts.denormals = found.at_least[0] - found.at_least[1];
  counts.negatives = found.negatives;
  Index left = found.at_least[0];
  for (std::size_t band = 1; band < NumberCounts::num_bands; ++band) {
    counts.bands[band - 1] = left - found.at_least[1 + band];
    left = found.at_least[1 + band];
  }
  counts.bands.back() = left;
  if (found.at_least[0] > 0) {
    counts.least_exponent = (found.below_least + 1) >> K::fraction_bits;
    counts.most_exponent = found.most >> K::fraction_bits;
  }
  if (counts.negatives > 0) {
    counts.first_negative = first_of<typename K::Word>(bytes, K::is_negative);
  }
  return counts;
}

template <typename K>
NumberCounts count_narrow(std::span<const std::byte> bytes, Width width) noexcept {
  constexpr std::size_t block_bytes = std::size_t{1} << 16;  // one NaN costs no more than this
  const std::size_t whole = bytes.size() / wide_width * wide_width;
  NumberCounts sum;
  for (std::size_t begin = 0; begin < whole; begin += block_bytes) {
    const std::size_t size = std::min(block_bytes, whole - begin);
    add_from(sum, count_block<K>(bytes.subspan(begin, size), width), begin);
  }
  add_from(sum, count_any<K>(bytes.subspan(whole)), whole);
  return sum;
}

}  // namespace

Width best_width() noexcept {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") != 0 ? Width::wide : Width::base;
#else
  return Width::base;
#endif
}

NumberCounts count_f8_e4m3(std::span<const std::byte> bytes, Width width) noexcept {
  return count_narrow<Kind<std::uint8_t, 4, 3, /*finite=*/true>>(bytes, width);
}

NumberCounts count_f8_e5m2(std::span<const std::byte> bytes, Width width) noexcept {
  return count_narrow<Kind<std::uint8_t, 5, 2>>(bytes, width);
}

}  // namespace remesh::detail
