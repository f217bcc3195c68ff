#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

#include "remesh/schema/cast.hpp"

namespace remesh {
namespace {

// IEEE 754: a sign, then an exponent, then the fraction.
struct Kind {
  int exponent_bits;
  int fraction_bits;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int largest_exponent() const { return (1 << exponent_bits) - 1; }  // of infinities and NaNs
  int bytes() const { return (1 + exponent_bits + fraction_bits) / 8; }
};

Kind kind_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return {11, 52};
    case DType::f32:
      return {8, 23};
    case DType::f16:
      return {5, 10};
    default:
      return {8, 7};
  }
}

std::uint64_t low_bits(int count) { return (std::uint64_t{1} << count) - 1; }

// significand * 2^exponent, or no number.
struct Number {
  enum class Is { finite, infinite, nan };
  bool negative = false;
  Is is = Is::finite;
  std::uint64_t significand = 0;
  int exponent = 0;
};

Number decode(std::uint64_t bits, Kind kind) {
  Number number;
  number.negative = (bits >> (kind.exponent_bits + kind.fraction_bits)) != 0;
  const auto exponent =
      static_cast<int>((bits >> kind.fraction_bits) & low_bits(kind.exponent_bits));
  number.significand = bits & low_bits(kind.fraction_bits);
  if (exponent == kind.largest_exponent()) {
    number.is = number.significand == 0 ? Number::Is::infinite : Number::Is::nan;
    return number;
  }
  if (exponent != 0) number.significand |= std::uint64_t{1} << kind.fraction_bits;
  number.exponent = std::max(exponent, 1) - kind.bias() - kind.fraction_bits;
  return number;
}

// Divides by 2^shift, to nearest, ties to even.
std::uint64_t divided(std::uint64_t significand, int shift) {
  if (shift > 63) return 0;  // less than half of the last place: significands have 53 bits
  const std::uint64_t whole = significand >> shift;
  const std::uint64_t rest = significand & low_bits(shift);
  const std::uint64_t half = std::uint64_t{1} << (shift - 1);
  return whole + (rest > half || (rest == half && (whole & 1) != 0) ? 1 : 0);
}

struct Encoded {
  std::uint64_t bits = 0;
  bool exact = true;
  bool overflow = false;
};

Encoded encode_finite(const Number& number, Kind kind) {
  if (number.significand == 0) return {};
  // The exponent of the last place: that of the leading bit less the fraction, denormals' at least.
  const int leading = 63 - std::countl_zero(number.significand) + number.exponent;
  const int last_place =
      std::max(leading - kind.fraction_bits, 1 - kind.bias() - kind.fraction_bits);
  const int shift = last_place - number.exponent;
  Encoded encoded;
  std::uint64_t units = 0;
  if (shift <= 0) {
    units = number.significand << -shift;
  } else {
    units = divided(number.significand, shift);
    encoded.exact = shift <= 63 && (units << shift) == number.significand;
  }
  // A carry out of the fraction adds one to the exponent, as the bits stand.
  const int biased = last_place + kind.fraction_bits + kind.bias();
  encoded.bits = units + (static_cast<std::uint64_t>(biased - 1) << kind.fraction_bits);
  const std::uint64_t infinity = static_cast<std::uint64_t>(kind.largest_exponent())
                                 << kind.fraction_bits;
  if (encoded.bits >= infinity) return {infinity, false, true};
  return encoded;
}

Encoded encode_nan(const Number& number, Kind from, Kind to) {
  const std::uint64_t quiet = std::uint64_t{1} << (to.fraction_bits - 1);
  const int shift = from.fraction_bits - to.fraction_bits;
  const std::uint64_t payload =
      shift >= 0 ? number.significand >> shift : number.significand << -shift;
  const std::uint64_t top = static_cast<std::uint64_t>(to.largest_exponent()) << to.fraction_bits;
  return {top | quiet | payload, true, false};
}

Encoded encode(const Number& number, Kind from, Kind to) {
  Encoded encoded;
  switch (number.is) {
    case Number::Is::finite:
      encoded = encode_finite(number, to);
      break;
    case Number::Is::infinite:
      encoded.bits = static_cast<std::uint64_t>(to.largest_exponent()) << to.fraction_bits;
      break;
    case Number::Is::nan:
      encoded = encode_nan(number, from, to);
      break;
  }
  if (number.negative) encoded.bits |= std::uint64_t{1} << (to.exponent_bits + to.fraction_bits);
  return encoded;
}

}  // namespace

CastResult cast_by_the_book(DType from, std::span<const std::byte> in, DType to,
                            std::span<std::byte> out) {
  assert(can_cast(from, to));
  const Kind source = kind_of(from);
  const Kind target = kind_of(to);
  const auto source_bytes = static_cast<std::size_t>(source.bytes());
  const auto target_bytes = static_cast<std::size_t>(target.bytes());
  CastResult result;
  for (std::size_t i = 0; i < in.size() / source_bytes; ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, in.data() + i * source_bytes, source_bytes);
    const Encoded encoded = encode(decode(bits, source), source, target);
    std::memcpy(out.data() + i * target_bytes, &encoded.bits, target_bytes);
    result.rounded += encoded.exact ? 0 : 1;
    if (encoded.overflow && !result.overflow) result.overflow = static_cast<std::int64_t>(i);
  }
  return result;
}

}  // namespace remesh
