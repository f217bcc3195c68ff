#include "remesh/verify/diff.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arbitrary.hpp"
#include "dense_store.hpp"
#include "diff_of.hpp"
#include "seeds.hpp"

namespace remesh {
namespace {

using test::bits_of;
using test::Dense;
using test::diff_of;
using test::put_bits;

// ---- An oracle: element by element, in long double, from the definitions of the dtypes alone.

struct Form {
  int exponent;  // bits of each
  int fraction;
  int bias;
  enum { ieee, fn, fnuz } kind = ieee;
};

std::optional<Form> form_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return Form{11, 52, 1023};
    case DType::f32:
      return Form{8, 23, 127};
    case DType::f16:
      return Form{5, 10, 15};
    case DType::bf16:
      return Form{8, 7, 127};
    case DType::f8_e5m2:
      return Form{5, 2, 15};
    case DType::f8_e4m3:
      return Form{4, 3, 7, Form::fn};
    case DType::f8_e4m3fnuz:
      return Form{4, 3, 8, Form::fnuz};
    case DType::f8_e5m2fnuz:
      return Form{5, 2, 16, Form::fnuz};
    default:
      return std::nullopt;
  }
}

bool is_signed(DType dtype) {
  return dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
}

bool is_bits_alone(DType dtype) { return bits(dtype) % 8 != 0 || dtype == DType::c64; }

long double value_of(DType dtype, std::uint64_t word) {
  if (dtype == DType::f8_e8m0) {
    return word == 255 ? std::nanl("") : std::ldexp(1.0L, static_cast<int>(word) - 127);
  }
  const auto form = form_of(dtype);
  if (!form) {
    const int width = bits(dtype);
    const bool negative = is_signed(dtype) && (word >> (width - 1)) != 0;
    return static_cast<long double>(word) - (negative ? std::ldexp(1.0L, width) : 0);
  }
  const auto low = [](std::uint64_t from, int count) { return from % (std::uint64_t{1} << count); };
  const std::uint64_t fraction = low(word, form->fraction);
  const auto exponent = static_cast<int>(low(word >> form->fraction, form->exponent));
  const bool negative = (word >> (form->fraction + form->exponent)) != 0;
  const int most = (1 << form->exponent) - 1;
  if (form->kind == Form::fnuz && negative && exponent == 0 && fraction == 0) return std::nanl("");
  if (form->kind == Form::fn && exponent == most && fraction == 7) return std::nanl("");
  if (form->kind == Form::ieee && exponent == most) {
    if (fraction != 0) return std::nanl("");
    return negative ? -INFINITY : INFINITY;
  }
  const long double one = std::ldexp(1.0L, form->fraction);
  const long double significand = static_cast<long double>(fraction) + (exponent > 0 ? one : 0.0L);
  const long double value =
      std::ldexp(significand, std::max(exponent, 1) - form->bias - form->fraction);
  return negative ? -value : value;
}

// How many numbers of the form lie between 0 and a value that is one of them.
long double rank_of(const Form& form, long double value) {
  if (value == 0) return 0;
  const int least = 1 - form.bias;
  const int exponent = std::max(std::ilogb(std::abs(value)), least);
  const long double steps = std::ldexp(std::abs(value), form.fraction - exponent) +
                            std::ldexp(static_cast<long double>(exponent - least), form.fraction);
  return value < 0 ? -steps : steps;
}

// The form in whose ulps elements are counted.
Form steps_of(DType left, DType right) {
  if (left == right) return *form_of(left);
  return *form_of(left == DType::f64 || right == DType::f64 ? DType::f64 : DType::f32);
}

long double steps_between(DType left, DType right, long double l, long double r) {
  if (left == right && left == DType::f8_e8m0) return std::abs(std::ilogb(l) - std::ilogb(r));
  if (!form_of(left) && left != DType::f8_e8m0) return std::abs(l - r);
  const Form form = steps_of(left, right);
  return std::abs(rank_of(form, l) - rank_of(form, r));
}

struct Expected {
  Index differing = 0;
  Index beyond = 0;
  Index nans = 0;
  Index infinite = 0;
  Index first = -1;
  long double most_steps = 0;
  long double most = 0;
  std::map<int, Index> histogram;
  Index finite = 0;
  long double absolute = 0, squared = 0, lefts = 0, rights = 0, product = 0;
};

bool is_within(const Tolerance& tolerance, bool floats, long double l, long double r,
               long double steps) {
  if (floats && tolerance.ulps && steps <= static_cast<long double>(*tolerance.ulps)) return true;
  if (!tolerance.absolute && !tolerance.relative) return false;
  const long double most = std::max(std::abs(l), std::abs(r));
  return std::abs(l - r) <= tolerance.absolute.value_or(0) + tolerance.relative.value_or(0) * most;
}

void expect_element(const TensorDesc& left, const TensorDesc& right, std::uint64_t l,
                    std::uint64_t r, const Tolerance& tolerance, Index place, Expected& sum) {
  const bool alone = is_bits_alone(left.dtype);
  const long double a = alone ? 0 : value_of(left.dtype, l);
  const long double b = alone ? 0 : value_of(right.dtype, r);
  const bool both_nan = std::isnan(a) && std::isnan(b);
  const bool same = left.dtype == right.dtype ? l == r : both_nan || a == b;
  const bool finite = std::isfinite(a) && std::isfinite(b);
  if (!same) {
    if (sum.first < 0) sum.first = place;
    ++sum.differing;
    if (std::isnan(a) || std::isnan(b)) {
      ++sum.nans;
    } else if (!finite) {
      ++sum.infinite;
    }
    if (!finite || alone) ++sum.beyond;
  }
  if (!finite || alone) return;
  ++sum.finite;
  sum.absolute += std::abs(a - b);
  sum.squared += (a - b) * (a - b);
  sum.lefts += a * a;
  sum.rights += b * b;
  sum.product += a * b;
  if (same) return;
  const bool floats = form_of(left.dtype) || left.dtype == DType::f8_e8m0;
  const long double steps = steps_between(left.dtype, right.dtype, a, b);
  sum.most_steps = std::max(sum.most_steps, steps);
  sum.most = std::max(sum.most, std::abs(a - b));
  ++sum.histogram[steps == 0 ? 0 : std::ilogb(steps) + 1];
  if (!is_within(tolerance, floats, a, b, steps)) ++sum.beyond;
}

Expected expected_of(const Dense& left, const Dense& right, const Tolerance& tolerance) {
  Expected sum;
  for (Index i = 0; i < left.desc.extent.num_elements(); ++i) {
    expect_element(left.desc, right.desc, bits_of(left, i), bits_of(right, i), tolerance, i, sum);
  }
  return sum;
}

void expect_near(const std::optional<double>& found, long double expected, const char* what) {
  ASSERT_TRUE(found.has_value()) << what;
  EXPECT_NEAR(*found, static_cast<double>(expected),
              1e-11 * static_cast<double>(std::abs(expected)) + 1e-15)
      << what;
}

void expect_figures(const TensorDiff& found, const Expected& expected) {
  if (found.likeness == Likeness::equal || found.elements == 0) return;
  if (found.not_finite > 0) {
    EXPECT_FALSE(found.mean_absolute.has_value());
    EXPECT_FALSE(found.relative_l2.has_value());
    EXPECT_FALSE(found.cosine.has_value());
    return;
  }
  if (expected.finite > 0 && std::isfinite(static_cast<double>(expected.absolute))) {
    expect_near(found.mean_absolute, expected.absolute / static_cast<long double>(expected.finite),
                "mean");
  }
  const long double l2 = std::sqrt(expected.squared / expected.lefts);
  if (expected.lefts > 0 && std::isfinite(static_cast<double>(l2))) {
    expect_near(found.relative_l2, l2, "relative L2");
  } else {
    EXPECT_FALSE(found.relative_l2.has_value());
  }
  if (expected.lefts > 0 && expected.rights > 0) {
    expect_near(found.cosine,
                expected.product / std::sqrt(expected.lefts) / std::sqrt(expected.rights),
                "cosine");
  } else {
    EXPECT_FALSE(found.cosine.has_value());
  }
}

void expect_tensor(const TensorDiff& found, const Dense& left, const Dense& right,
                   const Tolerance& tolerance) {
  SCOPED_TRACE(to_string(left.desc) + " against " + to_string(right.desc));
  const Expected expected = expected_of(left, right, tolerance);
  EXPECT_EQ(found.differing, expected.differing);
  EXPECT_EQ(found.beyond, expected.beyond);
  EXPECT_EQ(found.nans, expected.nans);
  EXPECT_EQ(found.infinite, expected.infinite);
  const bool equal = expected.differing == 0 && left.desc.dtype == right.desc.dtype;
  const bool within = expected.beyond == 0 && tolerance.any();
  EXPECT_EQ(found.likeness, equal    ? Likeness::equal
                            : within ? Likeness::within
                                     : Likeness::different);
  EXPECT_EQ(found.first.has_value(), expected.first >= 0);
  if (found.first) {
    const Box element = element_of(left.desc.extent, expected.first);
    for (int dim = 0; dim < element.ndim(); ++dim) {
      EXPECT_EQ(found.first->index[static_cast<std::size_t>(dim)], element[dim].begin);
    }
    EXPECT_EQ(found.first->left_bits, bits_of(left, expected.first));
    EXPECT_EQ(found.first->right_bits, bits_of(right, expected.first));
  }
  const bool has_numbers = !is_bits_alone(left.desc.dtype) && found.elements > 0;
  EXPECT_EQ(found.not_finite, has_numbers && !equal ? found.elements - expected.finite : 0);
  expect_figures(found, expected);
  if (!has_numbers) return;
  const auto steps = found.max_ulps ? found.max_ulps : found.max_difference;
  if (found.not_finite > 0) {
    EXPECT_FALSE(steps.has_value());
    EXPECT_FALSE(found.max_absolute.has_value());
  } else {
    ASSERT_TRUE(steps.has_value());
    EXPECT_EQ(static_cast<long double>(*steps), expected.most_steps);
    EXPECT_EQ(*found.max_absolute, static_cast<double>(expected.most));
  }
  Index in_histogram = 0;
  for (std::size_t k = 0; k < found.histogram.size(); ++k) {
    const auto bin = expected.histogram.find(static_cast<int>(k));
    EXPECT_EQ(found.histogram[k], bin == expected.histogram.end() ? 0 : bin->second) << k;
    in_histogram += found.histogram[k];
  }
  EXPECT_EQ(in_histogram, found.differing - found.nans - found.infinite);
}

// ---- Checkpoints that have something in common

// Most elements are left alone, some are moved a little, a few become any bits.
Dense disturbed(Dense tensor, test::Arbitrary& arbitrary) {
  const int share = static_cast<int>(arbitrary.pick(std::vector<Index>{0, 0, 3, 60}));
  for (Index i = 0; i < tensor.desc.extent.num_elements(); ++i) {
    if (!arbitrary.chance(share)) continue;
    const std::uint64_t old = bits_of(tensor, i);
    const auto any = static_cast<std::uint64_t>(arbitrary.between(0, 1'000'000'000)) << 32U;
    put_bits(tensor, i, arbitrary.chance(80) ? old ^ 1U : old ^ (any >> arbitrary.between(0, 40)));
  }
  return tensor;
}

// The same values in another float dtype, rounded somehow, where they have some.
Dense widened(const Dense& tensor, DType as) {
  Dense wide{{tensor.desc.name, as, tensor.desc.extent}, {}};
  wide.bytes.resize(static_cast<std::size_t>(num_bytes(wide.desc)));
  for (Index i = 0; i < tensor.desc.extent.num_elements(); ++i) {
    const long double value = value_of(tensor.desc.dtype, bits_of(tensor, i));
    const auto narrow = static_cast<float>(value);
    const auto full = static_cast<double>(value);
    std::uint64_t word = 0;
    std::uint32_t half = 0;
    std::memcpy(&half, &narrow, sizeof half);
    if (as == DType::f64) {
      std::memcpy(&word, &full, sizeof word);
    } else {
      word = half;
    }
    put_bits(wide, i, word);
  }
  return wide;
}

// Most tensors of checkpoints hold numbers alone, but few that are drawn do.
void make_finite(Dense& tensor) {
  if (is_bits_alone(tensor.desc.dtype)) return;
  for (Index i = 0; i < tensor.desc.extent.num_elements(); ++i) {
    if (!std::isfinite(value_of(tensor.desc.dtype, bits_of(tensor, i)))) put_bits(tensor, i, 1);
  }
}

std::vector<Dense> drawn(test::Arbitrary& arbitrary) {
  std::vector<Dense> tensors;
  for (TensorDesc& desc : arbitrary.tensors(8)) {
    const auto size = num_bytes(desc);
    tensors.push_back({std::move(desc), arbitrary.bytes(size)});
    if (arbitrary.chance(50)) make_finite(tensors.back());
  }
  return tensors;
}

// Figures, in the order of names, and nothing of where tensors stand in catalogs.
std::vector<TensorDiff> without_numbers(Diff found) {
  for (TensorDiff& tensor : found.tensors) tensor.left = tensor.right = 0;
  return std::move(found.tensors);
}

bool same_figures(const TensorDiff& a, const TensorDiff& b) {
  const auto same_first = [&] {
    if (a.first.has_value() != b.first.has_value()) return false;
    return !a.first || (a.first->index == b.first->index && a.first->left == b.first->left &&
                        a.first->right_bits == b.first->right_bits);
  };
  return a.likeness == b.likeness && a.differing == b.differing && a.beyond == b.beyond &&
         a.nans == b.nans && a.infinite == b.infinite && a.not_finite == b.not_finite &&
         a.max_ulps == b.max_ulps && a.histogram == b.histogram &&
         a.max_absolute == b.max_absolute && a.max_difference == b.max_difference &&
         a.mean_absolute == b.mean_absolute && a.relative_l2 == b.relative_l2 &&
         a.cosine == b.cosine && same_first();
}

Tolerance drawn_tolerance(test::Arbitrary& arbitrary) {
  Tolerance tolerance;
  if (arbitrary.chance(30)) tolerance.absolute = arbitrary.chance(50) ? 0.0 : 1e-3;
  if (arbitrary.chance(30)) tolerance.relative = 0.0078125;
  if (arbitrary.chance(30)) tolerance.ulps = static_cast<std::uint64_t>(arbitrary.between(0, 5));
  return tolerance;
}

TEST(Diff, SaysOfEachTensorWhatAnOracleSays) {
  const unsigned seeds = test::num_seeds(200);
  for (unsigned seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Arbitrary arbitrary(seed);
    const std::vector<Dense> left = drawn(arbitrary);
    std::vector<Dense> right;
    for (const Dense& tensor : left) {
      right.push_back(disturbed(tensor, arbitrary));
      const DType dtype = tensor.desc.dtype;
      const bool is_float = form_of(dtype) || dtype == DType::f8_e8m0;
      if (is_float && dtype != DType::f64 && arbitrary.chance(30)) {
        right.back() = widened(right.back(), arbitrary.chance(50) ? DType::f32 : DType::f64);
      }
    }
    const DiffOptions options{{}, {}, drawn_tolerance(arbitrary)};
    const Diff found = diff_of(left, right, options, 2, &arbitrary);
    ASSERT_EQ(found.tensors.size(), left.size());
    for (const TensorDiff& tensor : found.tensors) {
      expect_tensor(tensor, left[tensor.left], right[tensor.right], options.tolerance);
    }
  }
}

// Tensors of several panels, of which some are equal and some are not.
std::vector<Dense> large(test::Arbitrary& arbitrary) {
  std::vector<Dense> tensors;
  const std::vector<DType> dtypes{DType::f32, DType::bf16, DType::f64, DType::f4};
  for (std::size_t k = 0; k < dtypes.size(); ++k) {
    const Index rows = 1300 * 32 / bits(dtypes[k]);
    tensors.push_back({{"t." + std::to_string(k), dtypes[k], Box{{0, rows}, {0, 220}}}, {}});
    Dense& tensor = tensors.back();
    tensor.bytes = arbitrary.bytes(num_bytes(tensor.desc));
    if (!form_of(dtypes[k])) continue;
    for (Index i = 0; i < tensor.desc.extent.num_elements(); ++i) {  // none is NaN, few are large
      put_bits(tensor, i, bits_of(tensor, i) & ~(std::uint64_t{1} << (bits(dtypes[k]) - 2)));
    }
  }
  return tensors;
}

TEST(Diff, LayoutsThreadsAndOrderChangeNoBit) {
  const unsigned seeds = test::num_seeds(1);
  for (unsigned seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Arbitrary arbitrary(seed);
    std::vector<Dense> left = large(arbitrary);
    std::vector<Dense> right = left;
    for (Dense& tensor : right) {
      for (int k = 0; k < 40; ++k) {  // in the last panel alone
        const Index elements = tensor.desc.extent.num_elements();
        const Index at = arbitrary.between(elements - elements / 20, elements - 1);
        put_bits(tensor, at, bits_of(tensor, at) ^ 1U);
      }
    }
    const Diff found = diff_of(left, right, {}, 1);
    for (const TensorDiff& tensor : found.tensors) {
      if (seed == 0) expect_tensor(tensor, left[tensor.left], right[tensor.right], {});
    }
    arbitrary.shuffle(left);
    arbitrary.shuffle(right);
    const auto again = without_numbers(diff_of(left, right, {}, 3, &arbitrary));
    const auto first = without_numbers(found);
    ASSERT_EQ(first.size(), again.size());
    for (std::size_t k = 0; k < first.size(); ++k) {
      EXPECT_TRUE(same_figures(first[k], again[k])) << k;
      EXPECT_EQ(first[k].likeness, Likeness::different);
    }
  }
}

}  // namespace
}  // namespace remesh
