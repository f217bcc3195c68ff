#include "elements.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace remesh::detail {
namespace {

// One element.
struct Number {
  double value = 0;
  std::int64_t order = 0;
  Kind kind = Kind::finite;
};

// Sign and magnitude: of the magnitudes, those from `infinity` on are no finite numbers.
template <typename Word>
struct Magnitude {
  explicit Magnitude(Word bits) noexcept
      : magnitude(static_cast<std::int64_t>(bits & (sign - 1))), negative((bits & sign) != 0) {}

  static constexpr auto sign = static_cast<Word>(Word{1} << (8 * sizeof(Word) - 1));

  // Without a branch, since signs cannot be foretold.
  std::int64_t order() const noexcept {
    const auto mask = -static_cast<std::int64_t>(negative);
    return (magnitude ^ mask) - mask;
  }
  Kind kind(std::int64_t infinity) const noexcept {
    if (magnitude < infinity) return Kind::finite;
    return magnitude == infinity ? Kind::infinite : Kind::nan;
  }

  std::int64_t magnitude;
  bool negative;
};

template <typename Word>
Number of_ieee(Word bits, double value, std::int64_t infinity) noexcept {
  const Magnitude<Word> parts(bits);
  const Kind kind = parts.kind(infinity);
  return {kind == Kind::finite ? value : 0, parts.order(), kind};
}

Number of_f64(std::uint64_t bits) noexcept {
  return of_ieee(bits, std::bit_cast<double>(bits), 0x7ff0'0000'0000'0000);
}

Number of_f32(std::uint32_t bits) noexcept {
  return of_ieee(bits, static_cast<double>(std::bit_cast<float>(bits)), 0x7f80'0000);
}

Number of_bf16(std::uint16_t bits) noexcept {
  const auto wide = std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
  return of_ieee(bits, static_cast<double>(wide), 0x7f80);
}

// Its exponent and fraction, put into an f32, are 2^112 times too small.
Number of_f16(std::uint16_t bits) noexcept {
  const std::uint32_t magnitude = bits & 0x7fffU;
  const double value = static_cast<double>(std::bit_cast<float>(magnitude << 13U)) * 0x1p112;
  return of_ieee(bits, (bits & 0x8000U) != 0 ? -value : value, 0x7c00);
}

// How eight bits are shared out behind the sign.
struct ByteFloat {
  int exponent_bits;
  int fraction_bits;
  int bias;
};

double value_of(const ByteFloat& form, std::uint8_t bits) noexcept {
  const auto fraction_of = static_cast<unsigned>(form.fraction_bits);
  const unsigned fraction = bits & ((1U << fraction_of) - 1);
  const unsigned exponent =
      (bits & 0x7fU) >> fraction_of & ((1U << static_cast<unsigned>(form.exponent_bits)) - 1);
  const unsigned significand = exponent == 0 ? fraction : fraction | 1U << fraction_of;
  const double value =
      std::ldexp(static_cast<double>(significand),
                 static_cast<int>(std::max(exponent, 1U)) - form.bias - form.fraction_bits);
  return (bits & 0x80U) != 0 ? -value : value;
}

Number of_f8(DType dtype, std::uint8_t bits) noexcept {
  constexpr std::int64_t none = 0x80;  // no magnitude of seven bits
  switch (dtype) {
    case DType::f8_e5m2:
      return of_ieee(bits, value_of({5, 2, 15}, bits), 0x7c);
    case DType::f8_e4m3: {
      Number number = of_ieee(bits, value_of({4, 3, 7}, bits), none);
      if ((bits & 0x7fU) == 0x7f) number = {0, number.order, Kind::nan};
      return number;
    }
    case DType::f8_e8m0:
      if (bits == 0xff) return {0, bits, Kind::nan};
      return {std::ldexp(1.0, bits - 127), bits, Kind::finite};
    default: {
      // The fnuz kinds have one zero, and NaN in the place of the other.
      if (bits == 0x80) return {0, 0, Kind::nan};
      const ByteFloat form = dtype == DType::f8_e4m3fnuz ? ByteFloat{4, 3, 8} : ByteFloat{5, 2, 16};
      return of_ieee(bits, value_of(form, bits), none);
    }
  }
}

template <typename Word>
Number of_signed(Word bits) noexcept {
  const auto value = static_cast<std::make_signed_t<Word>>(bits);
  return {static_cast<double>(value), value, Kind::finite};
}

// The order of the largest u64 must fit.
template <typename Word>
Number of_unsigned(Word bits) noexcept {
  const std::uint64_t wide = bits;
  return {static_cast<double>(wide), static_cast<std::int64_t>(wide ^ 0x8000'0000'0000'0000),
          Kind::finite};
}

template <typename Word, typename Read>
void decode_all(std::span<const std::byte> bytes, const Read& read, Elements& into) noexcept {
  into.count = bytes.size() / sizeof(Word);
  for (std::size_t i = 0; i < into.count; ++i) {
    Word word = 0;
    std::memcpy(&word, bytes.data() + i * sizeof(Word), sizeof(Word));
    const Number number = read(word);
    into.bits[i] = word;
    into.values[i] = number.value;
    into.orders[i] = number.order;
    into.kinds[i] = number.kind;
  }
}

using ByteNumbers = std::array<Number, 256>;

ByteNumbers numbers_of(DType dtype) noexcept {
  ByteNumbers numbers{};
  for (unsigned bits = 0; bits < numbers.size(); ++bits) {
    numbers[bits] = of_f8(dtype, static_cast<std::uint8_t>(bits));
  }
  return numbers;
}

void decode_bytes(DType dtype, std::span<const std::byte> bytes, Elements& into) noexcept {
  static const std::array<ByteNumbers, 5> tables{
      numbers_of(DType::f8_e5m2), numbers_of(DType::f8_e4m3), numbers_of(DType::f8_e8m0),
      numbers_of(DType::f8_e4m3fnuz), numbers_of(DType::f8_e5m2fnuz)};
  static_assert(static_cast<int>(DType::f8_e5m2fnuz) - static_cast<int>(DType::f8_e5m2) == 4);
  const auto number = static_cast<std::size_t>(dtype) - static_cast<std::size_t>(DType::f8_e5m2);
  const ByteNumbers& table = tables[number];
  decode_all<std::uint8_t>(
      bytes, [&table](std::uint8_t bits) { return table[bits]; }, into);
}

}  // namespace

Reading reading_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::f4:
    case DType::f6_e2m3:
    case DType::f6_e3m2:
    case DType::c64:
      return Reading::bits;
    case DType::boolean:
    case DType::u8:
    case DType::i8:
    case DType::i16:
    case DType::u16:
    case DType::i32:
    case DType::u32:
    case DType::i64:
    case DType::u64:
      return Reading::integers;
    default:
      return Reading::floats;
  }
}

bool is_comparable(DType left, DType right) noexcept {
  return left == right ||
         (reading_of(left) == Reading::floats && reading_of(right) == Reading::floats);
}

void decode(DType dtype, std::span<const std::byte> bytes, Elements& into) noexcept {
  switch (dtype) {
    case DType::f64:
      return decode_all<std::uint64_t>(bytes, of_f64, into);
    case DType::f32:
      return decode_all<std::uint32_t>(bytes, of_f32, into);
    case DType::bf16:
      return decode_all<std::uint16_t>(bytes, of_bf16, into);
    case DType::f16:
      return decode_all<std::uint16_t>(bytes, of_f16, into);
    case DType::i8:
      return decode_all<std::uint8_t>(bytes, of_signed<std::uint8_t>, into);
    case DType::i16:
      return decode_all<std::uint16_t>(bytes, of_signed<std::uint16_t>, into);
    case DType::i32:
      return decode_all<std::uint32_t>(bytes, of_signed<std::uint32_t>, into);
    case DType::i64:
      return decode_all<std::uint64_t>(bytes, of_signed<std::uint64_t>, into);
    case DType::boolean:
    case DType::u8:
      return decode_all<std::uint8_t>(bytes, of_unsigned<std::uint8_t>, into);
    case DType::u16:
      return decode_all<std::uint16_t>(bytes, of_unsigned<std::uint16_t>, into);
    case DType::u32:
      return decode_all<std::uint32_t>(bytes, of_unsigned<std::uint32_t>, into);
    case DType::u64:
      return decode_all<std::uint64_t>(bytes, of_unsigned<std::uint64_t>, into);
    default:
      return decode_bytes(dtype, bytes, into);
  }
}

void reorder(DType as, Elements& elements) noexcept {
  for (std::size_t i = 0; i < elements.count; ++i) {
    const double value = elements.values[i];
    if (elements.kinds[i] != Kind::finite) {
      const bool negative = elements.kinds[i] == Kind::infinite && elements.orders[i] < 0;
      elements.orders[i] = negative ? -1 : 1;
      continue;
    }
    elements.orders[i] =
        as == DType::f64 ? of_f64(std::bit_cast<std::uint64_t>(value)).order
                         : of_f32(std::bit_cast<std::uint32_t>(static_cast<float>(value))).order;
  }
}

DType common_float(DType left, DType right) noexcept {
  if (left == right) return left;
  return left == DType::f64 || right == DType::f64 ? DType::f64 : DType::f32;
}

std::uint64_t bits_at(DType dtype, std::span<const std::byte> bytes, std::size_t number) noexcept {
  const auto width = static_cast<std::size_t>(bits(dtype));
  std::uint64_t value = 0;
  const std::size_t first = number * width / 8;
  const std::size_t last = std::min((number * width + width + 7) / 8, bytes.size());
  for (std::size_t at = first; at < last; ++at) {
    value |= std::to_integer<std::uint64_t>(bytes[at]) << (8 * (at - first));
  }
  value >>= number * width % 8;
  return width == 64 ? value : value & ((std::uint64_t{1} << width) - 1);
}

namespace {

std::array<std::byte, 8> bytes_of(std::uint64_t bits) noexcept {
  std::array<std::byte, 8> bytes{};
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    bytes[at] = static_cast<std::byte>(bits >> (8 * at) & 0xffU);
  }
  return bytes;
}

struct One {
  double value;
  std::int64_t order;
  Kind kind;
};

One decoded(DType dtype, std::uint64_t bits) noexcept {
  const auto bytes = bytes_of(bits);
  Elements one;
  decode(dtype, std::span(bytes).first(static_cast<std::size_t>(remesh::bits(dtype)) / 8), one);
  return {one.values[0], one.orders[0], one.kinds[0]};
}

std::string float_text(DType dtype, std::uint64_t bits) {
  const One one = decoded(dtype, bits);
  if (one.kind == Kind::nan) return "nan";
  if (one.kind == Kind::infinite) return one.order < 0 ? "-inf" : "inf";
  if (dtype == DType::f64) return fmt::format("{}", one.value);
  return fmt::format("{}", static_cast<float>(one.value));
}

std::string integer_text(DType dtype, std::uint64_t bits) {
  if (dtype == DType::u64) return fmt::format("{}", bits);
  if (dtype == DType::i64) return fmt::format("{}", static_cast<std::int64_t>(bits));
  return fmt::format("{}", static_cast<std::int64_t>(decoded(dtype, bits).value));
}

}  // namespace

std::string value_text(DType dtype, std::uint64_t bits) {
  switch (reading_of(dtype)) {
    case Reading::floats:
      return float_text(dtype, bits);
    case Reading::integers:
      return integer_text(dtype, bits);
    default:
      return {};
  }
}

std::string bits_text(DType dtype, std::uint64_t bits) {
  return fmt::format("0x{:0{}x}", bits, (remesh::bits(dtype) + 3) / 4);
}

std::string element_text(DType dtype, std::uint64_t bits) {
  const std::string value = value_text(dtype, bits);
  const std::string hex = bits_text(dtype, bits);
  return value.empty() ? hex : fmt::format("{} ({})", value, hex);
}

std::string distance_text(DType dtype, std::uint64_t left, std::uint64_t right) {
  const Reading reading = reading_of(dtype);
  if (reading == Reading::bits) return {};
  const One a = decoded(dtype, left);
  const One b = decoded(dtype, right);
  if (a.kind != Kind::finite || b.kind != Kind::finite) return "one is no finite number";
  const std::uint64_t steps = distance(a.order, b.order);
  if (reading == Reading::integers) return fmt::format("{}", steps);
  return fmt::format("{} {}", steps, steps == 1 ? "ulp" : "ulps");
}

std::string index_text(const Box& element) {
  fmt::memory_buffer text;
  for (int dim = 0; dim < element.ndim(); ++dim) {
    fmt::format_to(std::back_inserter(text), "{}{}", dim == 0 ? "" : ", ", element[dim].begin);
  }
  return fmt::format("[{}]", fmt::to_string(text));
}

}  // namespace remesh::detail
