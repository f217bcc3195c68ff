#include "remesh/schema/cast.hpp"

#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

namespace remesh {
namespace {

// A 16-bit kind of float, by its bits.
struct Half {
  std::uint16_t bits;
};
struct Brain {
  std::uint16_t bits;
};

// Wider floats have a NaN's quiet bit where narrower ones have theirs.
float widened(Brain value) {
  const bool is_nan = (value.bits & 0x7fffU) > 0x7f80U;
  return std::bit_cast<float>((value.bits | (is_nan ? 0x40U : 0U)) << 16);
}

float widened(Half value) {
  constexpr float denormal_step = 0x1p-24F;
  const std::uint32_t sign = (value.bits & 0x8000U) << 16;
  const std::uint32_t exponent = (value.bits >> 10) & 0x1fU;
  const std::uint32_t fraction = value.bits & 0x3ffU;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * denormal_step;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  const bool is_nan = exponent == 0x1f && fraction != 0;
  const std::uint32_t wide = exponent == 0x1f ? 0xffU : exponent + (127 - 15);
  return std::bit_cast<float>(sign | (wide << 23) | ((fraction | (is_nan ? 0x200U : 0U)) << 13));
}

// Rounded to odd: a value between two floats becomes the one whose last bit is set, so that a
// second rounding, to fewer bits, does not see a tie where there is none.
float narrowed_to_odd(double value) {
  const auto rounded = static_cast<float>(value);
  if (static_cast<double>(rounded) == value || std::isnan(value) || std::isinf(value)) {
    return rounded;
  }
  if (std::isinf(rounded)) {
    return std::copysign(std::numeric_limits<float>::max(), rounded);
  }
  auto bits = std::bit_cast<std::uint32_t>(rounded);
  const bool too_far = std::abs(static_cast<double>(rounded)) > std::abs(value);
  if (too_far) --bits;  // to the float that is nearer to zero
  return std::bit_cast<float>(bits | 1U);
}

Brain to_brain(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return {static_cast<std::uint16_t>((bits >> 16) | 0x40U)};
  return {static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16)};
}

Half to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  constexpr std::uint32_t least_normal = (127U - 14U) << 23;
  constexpr std::uint32_t beyond = (127U + 16U) << 23;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000U) {
    half = 0x7e00U | ((magnitude >> 13) & 0x3ffU);
  } else if (magnitude >= beyond) {
    half = 0x7c00U;
  } else if (magnitude >= least_normal) {
    const std::uint32_t rebiased = magnitude - ((127U - 15U) << 23);
    half = (rebiased + 0xfffU + ((rebiased >> 13) & 1U)) >> 13;
  } else {
    // The sum has steps of 2^-24, a half's denormals; the processor rounds.
    const float sum = std::bit_cast<float>(magnitude) + 0.5F;
    half = std::bit_cast<std::uint32_t>(sum) - std::bit_cast<std::uint32_t>(0.5F);
  }
  return {static_cast<std::uint16_t>(sign | half)};
}

double as_double(double value) { return value; }
double as_double(float value) { return value; }
double as_double(Half value) { return widened(value); }
double as_double(Brain value) { return widened(value); }

float as_float(double value) { return static_cast<float>(value); }
float as_float(float value) { return value; }
float as_float(Half value) { return widened(value); }
float as_float(Brain value) { return widened(value); }

float before_half(double value) { return narrowed_to_odd(value); }
template <typename T>
float before_half(T value) {
  return as_float(value);
}

template <typename From>
void convert(From from, double& to) {
  to = as_double(from);
}
template <typename From>
void convert(From from, float& to) {
  to = as_float(from);
}
template <typename From>
void convert(From from, Half& to) {
  to = to_half(before_half(from));
}
template <typename From>
void convert(From from, Brain& to) {
  to = to_brain(before_half(from));
}

template <typename From, typename To>
CastResult cast_all(std::span<const std::byte> in, std::span<std::byte> out) {
  CastResult result;
  const std::size_t count = in.size() / sizeof(From);
  for (std::size_t i = 0; i < count; ++i) {
    From from;
    To to;
    std::memcpy(&from, in.data() + i * sizeof from, sizeof from);
    convert(from, to);
    std::memcpy(out.data() + i * sizeof to, &to, sizeof to);
    const double before = as_double(from);
    const double after = as_double(to);
    const bool same = before == after || (std::isnan(before) && std::isnan(after));
    result.rounded += same ? 0 : 1;
    if (!result.overflow && std::isinf(after) && !std::isinf(before)) {
      result.overflow = static_cast<std::int64_t>(i);
    }
  }
  return result;
}

template <typename From>
CastResult cast_from(std::span<const std::byte> in, DType to, std::span<std::byte> out) {
  switch (to) {
    case DType::f64:
      return cast_all<From, double>(in, out);
    case DType::f32:
      return cast_all<From, float>(in, out);
    case DType::f16:
      return cast_all<From, Half>(in, out);
    default:
      return cast_all<From, Brain>(in, out);
  }
}

bool is_float(DType dtype) noexcept {
  return dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

}  // namespace

bool can_cast(DType from, DType to) noexcept { return is_float(from) && is_float(to); }

bool can_become(const TensorDesc& stored, const TensorDesc& wanted) noexcept {
  return stored.extent == wanted.extent &&
         (stored.dtype == wanted.dtype || can_cast(stored.dtype, wanted.dtype));
}

CastResult cast(DType from, std::span<const std::byte> in, DType to, std::span<std::byte> out) {
  assert(can_cast(from, to));
  switch (from) {
    case DType::f64:
      return cast_from<double>(in, to, out);
    case DType::f32:
      return cast_from<float>(in, to, out);
    case DType::f16:
      return cast_from<Half>(in, to, out);
    default:
      return cast_from<Brain>(in, to, out);
  }
}

}  // namespace remesh
