#include "element_diff.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace remesh::detail {

void add(PairCounts& sum, const PairCounts& part) noexcept {
  if (part.first < sum.first) {
    sum.first = part.first;
    sum.first_left = part.first_left;
    sum.first_right = part.first_right;
  }
  sum.differing += part.differing;
  sum.beyond += part.beyond;
  sum.nans += part.nans;
  sum.infinite += part.infinite;
  sum.most_distance = std::max(sum.most_distance, part.most_distance);
  sum.most_absolute = std::max(sum.most_absolute, part.most_absolute);
  for (std::size_t k = 0; k < sum.by_distance.size(); ++k) {
    sum.by_distance[k] += part.by_distance[k];
  }
}

void add(PairSums& sum, const PairSums& part) noexcept {
  sum.finite += part.finite;
  sum.absolute += part.absolute;
  sum.squared_difference += part.squared_difference;
  sum.left_squared += part.left_squared;
  sum.right_squared += part.right_squared;
  sum.product += part.product;
}

namespace {

// A few sums side by side, which the compiler keeps in one register. Which element enters which of
// them is fixed, and so is every rounding.
constexpr std::size_t num_lanes = 4;
static_assert(Elements::most % num_lanes == 0);

template <typename Real>
using Lanes = std::array<Real, num_lanes>;

template <typename Real>
long double total(const Lanes<Real>& lanes) noexcept {
  long double sum = 0;
  for (const Real lane : lanes) sum += static_cast<long double>(lane);
  return sum;
}

// `left` and `right` give the values of both sides. Elements that take no part are 0 on both, and
// so are those that fill up the last lanes. Returns the largest |left - right|.
template <typename Real, typename Left, typename Right>
Real add_sums(const Left& left, const Right& right, std::size_t count, PairSums& sums) noexcept {
  Lanes<Real> most{};
  Lanes<Real> absolute{};
  Lanes<Real> squared{};
  Lanes<Real> lefts{};
  Lanes<Real> rights{};
  Lanes<Real> products{};
  for (std::size_t i = 0; i < count; i += num_lanes) {
    for (std::size_t lane = 0; lane < num_lanes; ++lane) {
      const Real l = left(i + lane);
      const Real r = right(i + lane);
      const Real difference = l - r;
      const Real apart = std::abs(difference);
      most[lane] = most[lane] < apart ? apart : most[lane];
      absolute[lane] += apart;
      squared[lane] += difference * difference;
      lefts[lane] += l * l;
      rights[lane] += r * r;
      products[lane] += l * r;
    }
  }
  sums.absolute += total(absolute);
  sums.squared_difference += total(squared);
  sums.left_squared += total(lefts);
  sums.right_squared += total(rights);
  sums.product += total(products);
  return *std::ranges::max_element(most);
}

std::size_t filled_up(Elements& side) noexcept {
  std::size_t count = side.count;
  for (; count % num_lanes != 0; ++count) {
    side.values[count] = 0;
    side.bits[count] = 0;
  }
  return count;
}

// Squares of f64 leave the range of a double, and differences of large integers its precision.
void add_sums(DType common, Elements& left, Elements& right, PairSums& sums) noexcept {
  filled_up(left);
  const std::size_t count = filled_up(right);
  const auto values_of = [](const Elements& side) {
    return [&side](std::size_t i) { return side.values[i]; };
  };
  const auto integers_of = [common](const Elements& side) {
    return [&side, common](std::size_t i) {
      return common == DType::u64
                 ? static_cast<long double>(side.bits[i])
                 : static_cast<long double>(static_cast<std::int64_t>(side.bits[i]));
    };
  };
  if (common == DType::u64 || common == DType::i64) {
    add_sums<long double>(integers_of(left), integers_of(right), count, sums);
  } else if (common == DType::f64) {
    add_sums<long double>(values_of(left), values_of(right), count, sums);
  } else {
    add_sums<double>(values_of(left), values_of(right), count, sums);
  }
}

std::int64_t element_bytes(DType dtype) noexcept { return bits(dtype) / 8; }

std::span<const std::byte> part(std::span<const std::byte> bytes, DType dtype, std::size_t begin,
                                std::size_t count) {
  const auto width = static_cast<std::size_t>(element_bytes(dtype));
  return bytes.subspan(begin * width, count * width);
}

}  // namespace

// Both sides of some elements.
struct ElementDiff::Sides {
  Elements left;
  Elements right;

  std::size_t count() const noexcept { return left.count; }

  // What is no finite number on one side counts for no sum on either.
  Index leave_out_what_is_not_finite() noexcept {
    Index finite = 0;
    for (std::size_t i = 0; i < count(); ++i) {
      if (is_finite(i)) {
        ++finite;
      } else {
        left.values[i] = 0;
        right.values[i] = 0;
      }
    }
    return finite;
  }

  bool is_finite(std::size_t i) const noexcept {
    return left.kinds[i] == Kind::finite && right.kinds[i] == Kind::finite;
  }
  bool has(Kind kind, std::size_t i) const noexcept {
    return left.kinds[i] == kind || right.kinds[i] == kind;
  }
};

// Elements of both sides as f32, in which their own bits are the upper ones.
struct ElementDiff::Floats {
  using Words = std::array<std::uint32_t, Elements::most>;

  std::size_t count = 0;
  unsigned shift = 0;  // of their bits
  Words left;
  Words right;
  Words steps;  // how many of the dtype they are apart

  template <typename Word>
  static void widen(std::span<const std::byte> bytes, unsigned shift, Words& into) noexcept {
    for (std::size_t i = 0; i < bytes.size() / sizeof(Word); ++i) {
      Word word = 0;
      std::memcpy(&word, bytes.data() + i * sizeof(Word), sizeof(Word));
      into[i] = static_cast<std::uint32_t>(word) << shift;
    }
  }

  static std::uint32_t order(std::uint32_t bits) noexcept {
    const std::uint32_t negative = 0U - (bits >> 31U);
    return ((bits & 0x7fff'ffffU) ^ negative) - negative;
  }

  // Whether all are finite; and all steps, which otherwise mean nothing.
  bool take_steps() noexcept {
    std::uint32_t beyond = 0;
    for (std::size_t i = 0; i < count; ++i) {
      // Infinity and what is above it carries into the sign.
      beyond |= (left[i] & 0x7fff'ffffU) + 0x0080'0000U;
      beyond |= (right[i] & 0x7fff'ffffU) + 0x0080'0000U;
      const std::uint32_t l = order(left[i]);
      const std::uint32_t r = order(right[i]);
      const bool less = static_cast<std::int32_t>(l) < static_cast<std::int32_t>(r);
      steps[i] = (less ? r - l : l - r) >> shift;
    }
    return beyond >> 31U == 0;
  }

  Index num_same() const noexcept {
    std::uint32_t same = 0;
    for (std::size_t i = 0; i < count; ++i) same += left[i] == right[i] ? 1U : 0U;
    return same;
  }

  std::uint32_t most_steps() const noexcept {
    std::uint32_t most = 0;
    for (std::size_t i = 0; i < count; ++i) most = std::max(most, steps[i]);
    return most;
  }

  // Neighbours often fall into one bin, so they count in tables of their own.
  void add_to(std::array<Index, PairCounts::num_distances>& bins) const noexcept {
    std::array<std::array<std::uint32_t, 33>, num_lanes> tables{};
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t odd = std::uint64_t{2} * steps[i] + 1;  // so that no case is for 0
      ++tables[i % num_lanes][static_cast<std::size_t>(std::bit_width(odd) - 1)];
    }
    for (const auto& table : tables) {
      for (std::size_t k = 0; k < table.size(); ++k) bins[k] += table[k];
    }
  }
};

ElementDiff::ElementDiff(DType left, DType right, const Tolerance& tolerance)
    : left_(left),
      right_(right),
      common_(common_float(left, right)),
      reading_(reading_of(left)),
      are_wide_(left == right && (left == DType::f32 || left == DType::bf16)),
      tolerance_(tolerance) {}

void ElementDiff::compare(std::span<const std::byte> left, std::span<const std::byte> right,
                          Index first, PairCounts& counts, PairSums& sums) const {
  if (reading_ == Reading::bits) return compare_bits(left, right, first, counts);
  const std::size_t total = left.size() / static_cast<std::size_t>(element_bytes(left_));
  Sides sides;
  for (std::size_t begin = 0; begin < total; begin += Elements::most) {
    const std::size_t some = std::min(Elements::most, total - begin);
    if (compare_floats(part(left, left_, begin, some), part(right, right_, begin, some),
                       first + static_cast<Index>(begin), counts, sums)) {
      continue;
    }
    decode(left_, part(left, left_, begin, some), sides.left);
    decode(right_, part(right, right_, begin, some), sides.right);
    if (left_ != right_) {
      reorder(common_, sides.left);
      reorder(common_, sides.right);
    }
    const Index finite = sides.leave_out_what_is_not_finite();
    sums.finite += finite;
    const Index number = first + static_cast<Index>(begin);
    if (finite == static_cast<Index>(some) && !tolerance_.any()) {
      count_finite(sides, number, counts);
    } else {
      count(sides, number, counts);
    }
    add_sums(common_, sides.left, sides.right, sums);
  }
}

bool ElementDiff::compare_floats(std::span<const std::byte> left, std::span<const std::byte> right,
                                 Index first, PairCounts& counts, PairSums& sums) const {
  if (!are_wide_ || tolerance_.any()) return false;
  Floats floats;
  if (left_ == DType::f32) {
    floats.count = left.size() / sizeof(std::uint32_t);
    Floats::widen<std::uint32_t>(left, 0, floats.left);
    Floats::widen<std::uint32_t>(right, 0, floats.right);
  } else {
    floats.count = left.size() / sizeof(std::uint16_t);
    floats.shift = 16;
    Floats::widen<std::uint16_t>(left, 16, floats.left);
    Floats::widen<std::uint16_t>(right, 16, floats.right);
  }
  if (!floats.take_steps()) return false;
  count_floats(floats, first, counts);
  sums.finite += static_cast<Index>(floats.count);
  for (; floats.count % num_lanes != 0; ++floats.count) {
    floats.left[floats.count] = 0;
    floats.right[floats.count] = 0;
  }
  const auto values_of = [](const auto& bits) {
    return [&bits](std::size_t i) { return static_cast<double>(std::bit_cast<float>(bits[i])); };
  };
  const auto most =
      add_sums<double>(values_of(floats.left), values_of(floats.right), floats.count, sums);
  counts.most_absolute = std::max(counts.most_absolute, most);
  return true;
}

void ElementDiff::count_floats(const Floats& floats, Index first, PairCounts& counts) {
  const Index same = floats.num_same();
  const Index differing = static_cast<Index>(floats.count) - same;
  if (differing == 0) return;
  floats.add_to(counts.by_distance);
  counts.by_distance[0] -= same;
  counts.most_distance = std::max<std::uint64_t>(counts.most_distance, floats.most_steps());
  counts.differing += differing;
  counts.beyond += differing;
  if (first > counts.first) return;
  std::size_t i = 0;
  while (floats.left[i] == floats.right[i]) ++i;
  counts.first = first + static_cast<Index>(i);
  counts.first_left = floats.left[i] >> floats.shift;
  counts.first_right = floats.right[i] >> floats.shift;
}

void ElementDiff::add_equal(std::span<const std::byte> both, PairSums& sums) const {
  if (reading_ == Reading::bits) return;
  const std::size_t total = both.size() / static_cast<std::size_t>(element_bytes(left_));
  Elements side;
  for (std::size_t begin = 0; begin < total; begin += Elements::most) {
    const std::size_t some = std::min(Elements::most, total - begin);
    decode(left_, part(both, left_, begin, some), side);
    sums.finite += std::count(side.kinds.begin(),
                              side.kinds.begin() + static_cast<std::ptrdiff_t>(some), Kind::finite);
    add_sums(common_, side, side, sums);
  }
}

void ElementDiff::count(const Sides& sides, Index first, PairCounts& counts) const {
  const bool by_bits = left_ == right_;
  for (std::size_t i = 0; i < sides.count(); ++i) {
    const bool same = by_bits ? sides.left.bits[i] == sides.right.bits[i]
                              : sides.left.orders[i] == sides.right.orders[i] &&
                                    sides.left.kinds[i] == sides.right.kinds[i];
    if (!same) count_one(sides, i, first + static_cast<Index>(i), counts);
  }
}

// The same as count() where all elements are finite and none is within a tolerance: without
// branches, for tensors that differ everywhere.
void ElementDiff::count_finite(const Sides& sides, Index first, PairCounts& counts) const {
  const bool by_bits = left_ == right_;
  std::array<Index, PairCounts::num_distances> bins{};
  Index same = 0;
  for (std::size_t i = 0; i < sides.count(); ++i) {
    const std::uint64_t steps = distance(sides.left.orders[i], sides.right.orders[i]);
    ++bins[static_cast<std::size_t>(std::bit_width(steps))];
    counts.most_distance = std::max(counts.most_distance, steps);
    counts.most_absolute =
        std::max(counts.most_absolute, std::abs(sides.left.values[i] - sides.right.values[i]));
    same += (by_bits ? sides.left.bits[i] == sides.right.bits[i] : steps == 0) ? 1 : 0;
  }
  const Index differing = static_cast<Index>(sides.count()) - same;
  if (differing == 0) return;
  bins[0] -= same;
  for (std::size_t k = 0; k < bins.size(); ++k) counts.by_distance[k] += bins[k];
  counts.differing += differing;
  counts.beyond += differing;
  if (first > counts.first) return;
  std::size_t i = 0;
  while (by_bits ? sides.left.bits[i] == sides.right.bits[i]
                 : sides.left.orders[i] == sides.right.orders[i]) {
    ++i;
  }
  counts.first = first + static_cast<Index>(i);
  counts.first_left = sides.left.bits[i];
  counts.first_right = sides.right.bits[i];
}

void ElementDiff::count_one(const Sides& sides, std::size_t i, Index number,
                            PairCounts& counts) const {
  ++counts.differing;
  if (number < counts.first) {
    counts.first = number;
    counts.first_left = sides.left.bits[i];
    counts.first_right = sides.right.bits[i];
  }
  if (!sides.is_finite(i)) {
    ++(sides.has(Kind::nan, i) ? counts.nans : counts.infinite);
    ++counts.beyond;
    return;
  }
  const double left = sides.left.values[i];
  const double right = sides.right.values[i];
  const std::uint64_t steps = distance(sides.left.orders[i], sides.right.orders[i]);
  counts.most_distance = std::max(counts.most_distance, steps);
  ++counts.by_distance[static_cast<std::size_t>(std::bit_width(steps))];
  counts.most_absolute = std::max(counts.most_absolute, std::abs(left - right));
  if (!is_within(left, right, steps)) ++counts.beyond;
}

bool ElementDiff::is_within(double left, double right, std::uint64_t steps) const noexcept {
  const bool floats = reading_ == Reading::floats;
  if (floats && tolerance_.ulps && steps <= *tolerance_.ulps) return true;
  if (!tolerance_.absolute && !tolerance_.relative) return false;
  // Large integers are rounded as values, but their difference is not.
  const double apart = floats ? std::abs(left - right) : static_cast<double>(steps);
  return apart <= tolerance_.absolute.value_or(0) +
                      tolerance_.relative.value_or(0) * std::max(std::abs(left), std::abs(right));
}

void ElementDiff::compare_bits(std::span<const std::byte> left, std::span<const std::byte> right,
                               Index first, PairCounts& counts) const {
  const std::size_t total = left.size() * 8 / static_cast<std::size_t>(bits(left_));
  for (std::size_t i = 0; i < total; ++i) {
    const std::uint64_t l = bits_at(left_, left, i);
    const std::uint64_t r = bits_at(right_, right, i);
    if (l == r) continue;
    ++counts.differing;
    ++counts.beyond;
    const Index number = first + static_cast<Index>(i);
    if (number >= counts.first) continue;
    counts.first = number;
    counts.first_left = l;
    counts.first_right = r;
  }
}

}  // namespace remesh::detail
