#include "proportion.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "remesh/core/buffer.hpp"
#include "remesh/schema/cast.hpp"
#include "side_by_side.hpp"

namespace remesh::detail {
namespace {

constexpr std::int64_t least_telling = 16;  // elements that are neither zero nor powers of two

// How a dtype's bits are shared out; all have one sign bit in front.
struct FloatForm {
  int exponent_bits = 0;
  int fraction_bits = 0;
  /// Whether the largest exponent is kept for infinities and NaNs, of the fn kind for NaNs alone.
  bool keeps_largest = true;
};

std::optional<FloatForm> form_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return FloatForm{11, 52};
    case DType::f32:
      return FloatForm{8, 23};
    case DType::f16:
      return FloatForm{5, 10};
    case DType::bf16:
      return FloatForm{8, 7};
    case DType::f8_e5m2:
      return FloatForm{5, 2};
    case DType::f8_e4m3:
      return FloatForm{4, 3, false};
    default:
      return std::nullopt;
  }
}

// A finite number: significand * 2^exponent, the significand odd, or 0.
struct Number {
  std::uint64_t significand = 0;
  int exponent = 0;
  bool negative = false;
  bool special = false;
};

class Decoder {
 public:
  explicit Decoder(const FloatForm& form) : form_(form) {}

  Number operator()(std::uint64_t bits) const {
    const auto ones = [](int count) {
      return (std::uint64_t{1} << static_cast<unsigned>(count)) - 1;
    };
    const std::uint64_t fraction = bits & ones(form_.fraction_bits);
    const std::uint64_t exponent =
        bits >> static_cast<unsigned>(form_.fraction_bits) & ones(form_.exponent_bits);
    Number number;
    number.negative =
        (bits >> static_cast<unsigned>(form_.fraction_bits + form_.exponent_bits)) != 0;
    number.special = exponent == ones(form_.exponent_bits) &&
                     (form_.keeps_largest || fraction == ones(form_.fraction_bits));
    number.significand =
        exponent == 0 ? fraction
                      : fraction | std::uint64_t{1} << static_cast<unsigned>(form_.fraction_bits);
    if (number.significand == 0) return number;
    const int zeros = std::countr_zero(number.significand);
    number.significand >>= static_cast<unsigned>(zeros);
    number.exponent = static_cast<int>(std::max<std::uint64_t>(exponent, 1)) + zeros;
    return number;
  }

 private:
  FloatForm form_;
};

// What is still possible after some elements.
class Hypothesis {
 public:
  explicit Hypothesis(const FloatForm& form) : decode_(form) {}

  // Whether it can still be so.
  bool add(std::uint64_t left_bits, std::uint64_t right_bits) {
    const Number left = decode_(left_bits);
    const Number right = decode_(right_bits);
    if (left.special || right.special) return left_bits == right_bits;
    if (left.significand != right.significand) return false;
    if (left.significand == 0) return true;
    const Proportion here{left.exponent - right.exponent, left.negative != right.negative};
    if (left.significand != 1) ++telling_;
    if (!proportion_) proportion_ = here;
    return *proportion_ == here;
  }

  std::optional<Proportion> result() const {
    if (telling_ < least_telling || proportion_ == Proportion{}) return std::nullopt;
    return proportion_;
  }

 private:
  Decoder decode_;
  std::optional<Proportion> proportion_;
  std::int64_t telling_ = 0;
};

template <typename Element>
bool add_all(std::span<const std::byte> left, std::span<const std::byte> right,
             Hypothesis& hypothesis) {
  for (std::size_t at = 0; at < left.size(); at += sizeof(Element)) {
    Element a = 0;
    Element b = 0;
    std::memcpy(&a, left.data() + at, sizeof(Element));
    std::memcpy(&b, right.data() + at, sizeof(Element));
    if (!hypothesis.add(a, b)) return false;
  }
  return true;
}

bool add_panel(int width, std::span<const std::byte> left, std::span<const std::byte> right,
               Hypothesis& hypothesis) {
  switch (width) {
    case 1:
      return add_all<std::uint8_t>(left, right, hypothesis);
    case 2:
      return add_all<std::uint16_t>(left, right, hypothesis);
    case 4:
      return add_all<std::uint32_t>(left, right, hypothesis);
    default:
      return add_all<std::uint64_t>(left, right, hypothesis);
  }
}

}  // namespace

std::optional<Proportion> find_proportion(const JudgeContext& context, const Reader& left,
                                          std::size_t l, const Reader& right, std::size_t r) {
  const TensorDesc& desc = left.catalog().tensors[l];
  const auto form = form_of(desc.dtype);
  if (!form || desc.extent.ndim() == 0 || desc.extent.empty()) return std::nullopt;
  Hypothesis hypothesis(*form);
  const bool holds = side_by_side(context, left, l, right, r, [&](auto ours, auto theirs) {
    return add_panel(bits(desc.dtype) / 8, ours, theirs, hypothesis);
  });
  return holds ? hypothesis.result() : std::nullopt;
}

bool is_cast_of(const JudgeContext& context, const Reader& ours, std::size_t our_tensor,
                const Reader& theirs, std::size_t their_tensor) {
  const TensorDesc& desc = ours.catalog().tensors[our_tensor];
  const DType from = theirs.catalog().tensors[their_tensor].dtype;
  if (desc.extent.ndim() == 0 || desc.extent.empty()) return false;
  Buffer turned(compared_panel_bytes);
  return side_by_side(context, ours, our_tensor, theirs, their_tensor, [&](auto mine, auto other) {
    const auto into = turned.bytes().first(mine.size());
    cast(from, other, desc.dtype, into);
    return std::ranges::equal(into, mine);
  });
}

}  // namespace remesh::detail
