#include "number_scan.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <type_traits>

#include "float_kind.hpp"
#include "narrow_scan.hpp"

namespace remesh::detail {
namespace {

// How many of the elements `is` true of: branch-free, so that the compiler takes many at a time.
template <typename Word, typename Predicate>
Index count_of(std::span<const std::byte> bytes, Predicate is) noexcept {
  // Sums no wider than the elements fill whole vectors; this many cannot overflow them.
  constexpr std::size_t most = std::min<std::uint64_t>(std::numeric_limits<Word>::max(), 1U << 15);
  const std::size_t count = bytes.size() / sizeof(Word);
  Index sum = 0;
  for (std::size_t begin = 0; begin < count; begin += most) {
    const std::size_t end = std::min(count, begin + most);
    Word part = 0;
    for (std::size_t k = begin; k < end; ++k) {
      part = static_cast<Word>(part + (is(load_word<Word>(bytes, k)) ? 1 : 0));
    }
    sum += static_cast<Index>(part);
  }
  return sum;
}

// How many elements have each sign and exponent. Neighbours are much alike, and a sum that was just
// stored is slow to load again: so there are several sums, used in turn.
template <typename K>
class Tops {
 public:
  explicit Tops(std::span<const std::byte> bytes) noexcept {
    constexpr std::size_t num_lanes = K::num_tops > 1024 ? 1 : 4;
    std::array<std::array<std::uint32_t, K::num_tops>, num_lanes> lanes{};
    const std::size_t count = bytes.size() / sizeof(typename K::Word);
    std::size_t k = 0;
    for (; k + num_lanes <= count; k += num_lanes) {
      for (std::size_t lane = 0; lane < num_lanes; ++lane) ++lanes[lane][at(bytes, k + lane)];
    }
    for (; k < count; ++k) ++lanes[0][at(bytes, k)];
    for (const auto& lane : lanes) {
      for (std::size_t top = 0; top < K::num_tops; ++top) tops_[top] += lane[top];
    }
  }

  Index positive(std::size_t field) const noexcept { return tops_[field]; }
  Index negative(std::size_t field) const noexcept { return tops_[field + K::num_tops / 2]; }

 private:
  static std::size_t at(std::span<const std::byte> bytes, std::size_t k) noexcept {
    return static_cast<std::size_t>(load_word<typename K::Word>(bytes, k) >> K::fraction_bits);
  }

  std::array<Index, K::num_tops> tops_{};
};

// Sign and exponent say nearly all of any numbers. Where some have the least exponent or the
// greatest, passes of their own tell zeros from denormals, and infinities from NaN.
template <typename K>
NumberCounts count_any(std::span<const std::byte> bytes) noexcept {
  using Word = typename K::Word;
  const Tops<K> tops(bytes);
  NumberCounts counts;
  counts.elements = static_cast<Index>(bytes.size() / sizeof(Word));
  for (std::size_t field = 1; field < K::most_field; ++field) {
    counts.negatives += tops.negative(field);
    add_finite<K>(counts, field, tops.positive(field) + tops.negative(field));
  }
  if (const Index small = tops.positive(0) + tops.negative(0); small > 0) {
    counts.zeros = count_of<Word>(bytes, K::is_zero);
    counts.denormals = small - counts.zeros;
    if (tops.negative(0) > 0) {
      counts.negatives += tops.negative(0) - count_of<Word>(bytes, K::is_minus_zero);
    }
    add_finite<K>(counts, 0, counts.denormals);
  }
  const Index large = tops.positive(K::most_field) + tops.negative(K::most_field);
  if (large > 0) {
    const Index beyond = count_of<Word>(bytes, K::is_not_finite);
    counts.infinities = count_of<Word>(bytes, K::is_infinite);
    counts.nans = beyond - counts.infinities;
    counts.negatives += tops.negative(K::most_field) - count_of<Word>(bytes, K::is_minus_nan);
    add_finite<K>(counts, K::most_field, large - beyond);
    if (beyond > 0) counts.first_not_finite = first_of<Word>(bytes, K::is_not_finite);
  }
  if (counts.negatives > 0) counts.first_negative = first_of<Word>(bytes, K::is_negative);
  return counts;
}

// As many elements as all processors take at a time, as signed numbers, which they compare best.
template <typename K>
struct Vectors {
  using Lane = std::make_signed_t<typename K::Word>;
  static constexpr std::size_t size_bytes = 16;
  using Vector [[gnu::vector_size(size_bytes)]] = Lane;
  static constexpr auto all = static_cast<Lane>(K::all);

  static Vector load(std::span<const std::byte> bytes, std::size_t at) noexcept {
    Vector vector;
    std::memcpy(&vector, bytes.data() + at, size_bytes);
    return vector;
  }
  static Index sum(Vector vector) noexcept {
    Index sum = 0;
    for (std::size_t lane = 0; lane < size_bytes / sizeof(Lane); ++lane) sum += vector[lane];
    return sum;
  }
};

// What tells whether a block has normal numbers alone.
template <typename K>
struct Overview {
  Index signs = 0;
  Index least = 0;  // of the magnitudes' bits
  Index most = 0;
};

template <typename K>
Overview<K> overview_of(std::span<const std::byte> bytes) noexcept {
  using V = Vectors<K>;
  typename V::Vector signs{};
  typename V::Vector most{};
  typename V::Vector least = ~typename V::Vector{} & V::all;
  for (std::size_t at = 0; at < bytes.size(); at += V::size_bytes) {
    const auto elements = V::load(bytes, at);
    const auto magnitudes = elements & V::all;
    signs -= elements < 0;  // true is -1
    least = magnitudes < least ? magnitudes : least;
    most = magnitudes > most ? magnitudes : most;
  }
  Overview<K> overview{V::sum(signs), least[0], most[0]};
  for (std::size_t lane = 1; lane < V::size_bytes / sizeof(typename V::Lane); ++lane) {
    overview.least = std::min<Index>(overview.least, least[lane]);
    overview.most = std::max<Index>(overview.most, most[lane]);
  }
  return overview;
}

template <typename K>
Index count_at_least(std::span<const std::byte> bytes, Index magnitude) noexcept {
  using V = Vectors<K>;
  const auto least = static_cast<typename V::Lane>(magnitude);
  typename V::Vector counts{};
  for (std::size_t at = 0; at < bytes.size(); at += V::size_bytes) {
    counts -= (V::load(bytes, at) & V::all) >= least;
  }
  return V::sum(counts);
}

// The numbers of a block that has normal ones of few bands alone, as nearly all blocks of weights,
// or zeros alone. Nothing of others.
template <typename K>
std::optional<NumberCounts> count_plain(std::span<const std::byte> bytes) noexcept {
  constexpr int band_bits = K::fraction_bits + K::band_shift;
  constexpr Index most_passes = 4;
  if (bytes.size() % Vectors<K>::size_bytes != 0) return std::nullopt;
  const Overview<K> overview = overview_of<K>(bytes);
  NumberCounts counts;
  counts.elements = static_cast<Index>(bytes.size() / sizeof(typename K::Word));
  if (overview.most == 0) {
    counts.zeros = counts.elements;
    return counts;
  }
  const Index first = overview.least >> band_bits;
  const Index last = overview.most >> band_bits;
  const bool normal = overview.least >> K::fraction_bits > 0 && overview.most < K::first_beyond;
  if (!normal || last - first > most_passes) return std::nullopt;
  Index left = counts.elements;
  for (Index band = first; band < last; ++band) {
    const Index beyond = count_at_least<K>(bytes, (band + 1) << band_bits);
    counts.bands[static_cast<std::size_t>(band)] = left - beyond;
    left = beyond;
  }
  counts.bands[static_cast<std::size_t>(last)] = left;
  counts.least_exponent = static_cast<int>(overview.least >> K::fraction_bits);
  counts.most_exponent = static_cast<int>(overview.most >> K::fraction_bits);
  counts.negatives = overview.signs;
  if (counts.negatives > 0) {
    counts.first_negative = first_of<typename K::Word>(bytes, K::is_negative);
  }
  return counts;
}

template <typename K>
NumberCounts count_floats(std::span<const std::byte> bytes) noexcept {
  // So few that the sums of a vector do not overflow, and that a second pass finds them near.
  constexpr std::size_t block_bytes = std::size_t{1} << 16;
  constexpr bool has_vectors = sizeof(typename K::Word) == 2;  // wider ones gain nothing
  if constexpr (!has_vectors) {
    return count_any<K>(bytes);
  } else {
    NumberCounts sum;
    for (std::size_t begin = 0; begin < bytes.size(); begin += block_bytes) {
      const auto block = bytes.subspan(begin, std::min(block_bytes, bytes.size() - begin));
      const auto plain = count_plain<K>(block);
      add_from(sum, plain ? *plain : count_any<K>(block), begin / sizeof(typename K::Word));
    }
    return sum;
  }
}

template <typename Word>
NumberCounts count_integers(std::span<const std::byte> bytes) noexcept {
  NumberCounts counts;
  counts.elements = static_cast<Index>(bytes.size() / sizeof(Word));
  using Bits = std::make_unsigned_t<Word>;
  counts.zeros = count_of<Bits>(bytes, [](Bits word) { return word == 0; });
  if constexpr (std::is_signed_v<Word>) {
    const auto is_negative = [](Bits word) { return static_cast<Word>(word) < 0; };
    counts.negatives = count_of<Bits>(bytes, is_negative);
    if (counts.negatives > 0) counts.first_negative = first_of<Bits>(bytes, is_negative);
  }
  return counts;
}

}  // namespace

void add(NumberCounts& sum, const NumberCounts& part) noexcept {
  sum.elements += part.elements;
  sum.zeros += part.zeros;
  sum.nans += part.nans;
  sum.infinities += part.infinities;
  sum.denormals += part.denormals;
  sum.negatives += part.negatives;
  for (std::size_t band = 0; band < sum.bands.size(); ++band) sum.bands[band] += part.bands[band];
  sum.least_exponent = std::min(sum.least_exponent, part.least_exponent);
  sum.most_exponent = std::max(sum.most_exponent, part.most_exponent);
  sum.first_not_finite = std::min(sum.first_not_finite, part.first_not_finite);
  sum.first_negative = std::min(sum.first_negative, part.first_negative);
}

bool is_counted_float(DType dtype) noexcept {
  switch (dtype) {
    case DType::f64:
    case DType::f32:
    case DType::f16:
    case DType::bf16:
    case DType::f8_e4m3:
    case DType::f8_e5m2:
      return true;
    default:
      return false;
  }
}

bool is_counted(DType dtype) noexcept {
  switch (dtype) {
    case DType::i8:
    case DType::u8:
    case DType::i16:
    case DType::u16:
    case DType::i32:
    case DType::u32:
    case DType::i64:
    case DType::u64:
      return true;
    default:
      return is_counted_float(dtype);
  }
}

NumberCounts count_numbers(DType dtype, std::span<const std::byte> bytes) noexcept {
  switch (dtype) {
    case DType::f64:
      return count_floats<Kind<std::uint64_t, 11, 52>>(bytes);
    case DType::f32:
      return count_floats<Kind<std::uint32_t, 8, 23>>(bytes);
    case DType::f16:
      return count_floats<Kind<std::uint16_t, 5, 10>>(bytes);
    case DType::bf16:
      return count_floats<Kind<std::uint16_t, 8, 7>>(bytes);
    case DType::f8_e4m3:
      return count_f8_e4m3(bytes);
    case DType::f8_e5m2:
      return count_f8_e5m2(bytes);
    case DType::i8:
      return count_integers<std::int8_t>(bytes);
    case DType::i16:
      return count_integers<std::int16_t>(bytes);
    case DType::u16:
      return count_integers<std::uint16_t>(bytes);
    case DType::i32:
      return count_integers<std::int32_t>(bytes);
    case DType::u32:
      return count_integers<std::uint32_t>(bytes);
    case DType::i64:
      return count_integers<std::int64_t>(bytes);
    case DType::u64:
      return count_integers<std::uint64_t>(bytes);
    default:
      return count_integers<std::uint8_t>(bytes);
  }
}

}  // namespace remesh::detail
