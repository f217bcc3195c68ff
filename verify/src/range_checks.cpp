#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "remesh/core/buffer.hpp"
#include "remesh/schema/cast.hpp"
#include "side_by_side.hpp"
#include "since.hpp"

namespace remesh::detail {
namespace {

// A step moves all elements of a weight by about as much, whatever they are. So the greatest grows
// by a few powers of two only where most others grow too.
constexpr int far_beyond = 4;
constexpr int absurdly_beyond = 10;
// A gradient that spikes makes moments jump, but not so far.
constexpr int beyond_any_spike = 32;
constexpr int least_of_spikes = 20;
// A weight that passes zero seldom comes so near to it; from a size like others' none does.
constexpr int tiny_exponent = -48;
constexpr int plain_exponent = -32;
// Twice and half come of rounding and long pauses between saves.
constexpr int least_scale = 2;
constexpr Index least_scaled = 16;

struct FloatKind {
  int bias = 127;
  std::size_t tiny_bands = 3;  // of NumberCounts::bands, those below 2^plain_exponent
};

// Nothing of dtypes that are not compared: fp8 has its range in scales beside it.
std::optional<FloatKind> kind_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return FloatKind{1023, 0};
    case DType::f32:
    case DType::bf16:
      return FloatKind{127, 3};
    case DType::f16:
      return FloatKind{15, 0};
    default:
      return std::nullopt;
  }
}

Index tiny_of(const NumberCounts& counts, const FloatKind& kind) {
  Index sum = 0;
  for (std::size_t band = 0; band < kind.tiny_bands; ++band) sum += counts.bands[band];
  return sum;
}

// So many that a row was lost, or one in a hundred.
Index least_zeroed(const TensorDesc& desc) {
  const Index elements = desc.extent.num_elements();
  const Index row = desc.extent.ndim() < 2 ? elements : elements / desc.extent[0].size();
  return std::min(row, std::max<Index>(2, elements / 100));
}

// Of very many elements some may be tiny by chance.
Index least_tiny(const TensorDesc& desc) {
  return std::max<Index>(1, desc.extent.num_elements() >> 24);
}

// The elements of two saves, one by one.
struct Comparison {
  static constexpr int most_shift = 2200;  // of f64, denormals included

  // Of elements that are finite and not zero on both sides and have one sign, by the nearest power
  // of two that one is of the other; and those that are that power to an eighth.
  std::array<Index, 2 * most_shift + 1> shifts{};
  std::array<Index, 2 * most_shift + 1> near{};
  Index beyond = 0;  // larger than the largest before by the margin
  Index first_beyond = NumberCounts::nowhere;
  double greatest = 0;
  Index zeroed = 0;
  Index first_zeroed = NumberCounts::nowhere;
  Index shrunk = 0;
  Index first_shrunk = NumberCounts::nowhere;

  Index both() const {
    Index sum = 0;
    for (const Index count : shifts) sum += count;
    return sum;
  }
  int median_shift() const {
    Index left = both() / 2;
    int shift = -most_shift;
    for (const Index count : shifts) {
      if (left < count) return shift;
      left -= count;
      ++shift;
    }
    return 0;
  }
  // The power of two by which at least half of the elements were multiplied.
  std::optional<int> scale() const {
    const auto most = std::ranges::max_element(near);
    if (*most < least_scaled || 2 * *most < both()) return std::nullopt;
    return static_cast<int>(most - near.begin()) - most_shift;
  }
};

int exponent_of(double value) {
  constexpr int fraction_bits = 52;
  constexpr std::uint64_t field = 0x7ff;
  return static_cast<int>(std::bit_cast<std::uint64_t>(value) >> fraction_bits & field) - 1023;
}

bool is_finite(double value) { return exponent_of(value) <= 1023; }

void note_first(Index& count, Index& first, Index number) {
  if (count++ == 0) first = number;
}

class Comparer {
 public:
  // `limit`: the least exponent that is beyond what there was.
  Comparer(int limit, Comparison& result) : limit_(limit), result_(result) {}

  void add(double now, double before) {
    const Index number = number_++;
    if (!is_finite(now) || !is_finite(before)) return;
    const int exponent = exponent_of(now);
    if (now == 0) {
      if (before != 0) note_first(result_.zeroed, result_.first_zeroed, number);
      return;
    }
    if (exponent >= limit_) {
      note_first(result_.beyond, result_.first_beyond, number);
      if (std::abs(now) > std::abs(result_.greatest)) result_.greatest = now;
    }
    if (before == 0) return;
    if (exponent < tiny_exponent && exponent_of(before) >= plain_exponent) {
      note_first(result_.shrunk, result_.first_shrunk, number);
    }
    add_ratio(now / before);
  }

 private:
  void add_ratio(double ratio) {
    constexpr double root = 1.4142135623730951;
    constexpr double eighth = 0.125;
    if (!(ratio > 0) || !is_finite(ratio)) return;
    int shift = exponent_of(ratio);
    auto rest = std::bit_cast<double>((std::bit_cast<std::uint64_t>(ratio) << 12 >> 12) |
                                      std::uint64_t{1023} << 52);
    if (rest > root) {
      rest /= 2;
      ++shift;
    }
    const auto at = static_cast<std::size_t>(
        std::clamp(shift, -Comparison::most_shift, Comparison::most_shift) +
        Comparison::most_shift);
    ++result_.shifts[at];
    if (std::abs(rest - 1) <= eighth) ++result_.near[at];
  }

  int limit_;
  Comparison& result_;
  Index number_ = 0;
};

Comparison compare_elements(const JudgeContext& context, const TwoSaves& saves, const Kept& kept,
                            int limit) {
  const DType dtype = saves.now.desc(kept.now).dtype;
  const std::int64_t most = compared_panel_bytes / (bits(dtype) / 8) * 8;
  const auto held = context.budget.reserve(2 * most, "elements to be compared");
  Buffer now(most);
  Buffer before(most);
  Comparison result;
  Comparer comparer(limit, result);
  side_by_side(context, saves.now.reader, kept.now, saves.before.reader, kept.before,
               [&](std::span<const std::byte> left, std::span<const std::byte> right) {
                 const std::size_t count =
                     left.size() / (static_cast<std::size_t>(bits(dtype)) / 8);
                 cast(dtype, left, DType::f64, now.bytes().first(count * 8));
                 cast(dtype, right, DType::f64, before.bytes().first(count * 8));
                 for (std::size_t k = 0; k < count; ++k) {
                   double a = 0;
                   double b = 0;
                   std::memcpy(&a, now.bytes().data() + k * 8, sizeof a);
                   std::memcpy(&b, before.bytes().data() + k * 8, sizeof b);
                   comparer.add(a, b);
                 }
                 return true;
               });
  return result;
}

class RangeCheck {
 public:
  RangeCheck(const JudgeContext& context, const TwoSaves& saves, std::vector<Finding>& findings)
      : context_(context), saves_(saves), findings_(findings) {}

  void check(const Kept& kept) {
    const TensorDesc& desc = saves_.now.desc(kept.now);
    const auto kind = kind_of(desc.dtype);
    const std::string_view state = saves_.now.state(kept.now);
    if (!kept.changed || !kind || desc.extent.ndim() == 0 || state == "step") return;
    if (state.empty() || state == "master" || state == "fp32") {
      check_weight(kept, desc, *kind);
    } else {
      check_moment(kept, *kind);
    }
  }

 private:
  void check_weight(const Kept& kept, const TensorDesc& desc, const FloatKind& kind) {
    const NumberCounts& now = saves_.now.numbers.of(kept.now);
    const NumberCounts& before = saves_.before.numbers.of(kept.before);
    const bool have_numbers = now.most_exponent >= 0 && before.most_exponent >= 0;
    const bool moved =
        have_numbers && std::abs(now.most_exponent - before.most_exponent) >= least_scale;
    const bool lost = now.zeros - before.zeros >= least_zeroed(desc);
    const bool shrank = tiny_of(now, kind) - tiny_of(before, kind) >= least_tiny(desc);
    if (!moved && !lost && !shrank) return;
    const int greatest = before.most_exponent - kind.bias;
    const Comparison found = compare_elements(
        context_, saves_, kept, before.most_exponent < 0 ? 2048 : greatest + far_beyond);
    if (const auto scale = found.scale(); scale && std::abs(*scale) >= least_scale) {
      return report_scale(kept, *scale);
    }
    if (found.beyond > 0 && std::abs(found.median_shift()) <= 1) {
      const bool absurd = exponent_of(found.greatest) >= greatest + absurdly_beyond;
      report_beyond(kept, found, greatest, absurd ? Severity::error : Severity::warn);
    }
    if (found.zeroed >= least_zeroed(desc)) report_zeroed(kept, found);
    if (found.shrunk >= least_tiny(desc)) report_shrunk(kept, found);
  }

  void check_moment(const Kept& kept, const FloatKind& kind) {
    const int now = saves_.now.numbers.of(kept.now).most_exponent;
    const int before = saves_.before.numbers.of(kept.before).most_exponent;
    const int greatest = before - kind.bias;
    if (before < 0 || now < before + beyond_any_spike || now - kind.bias < least_of_spikes) return;
    const Comparison found = compare_elements(context_, saves_, kept, greatest + beyond_any_spike);
    if (found.beyond > 0) report_beyond(kept, found, greatest, Severity::error);
  }

  void add(Finding finding, std::string found, std::string expected, std::string message) {
    finding.found = std::move(found);
    finding.expected = std::move(expected);
    finding.message = std::move(message);
    finding.next_step =
        "go back to the earlier save, or compare both with `remesh verify --against`";
    findings_.push_back(std::move(finding));
  }

  void report_scale(const Kept& kept, int scale) {
    const std::string factor = fmt::format("2^{}", scale);
    add(about_tensor("RM512", Severity::error, saves_.now, kept.now), factor,
        "elements about as large as before",
        fmt::format("{}: elements are {} times what they were in the earlier save; a scale was "
                    "applied twice, or not at all",
                    to_string(saves_.now.desc(kept.now)), factor));
  }

  void report_beyond(const Kept& kept, const Comparison& found, int greatest, Severity severity) {
    Finding finding = about_element("RM512", severity, saves_.now, kept.now, found.first_beyond);
    const std::string where = to_string(*finding.box);
    add(std::move(finding), fmt::format("{:.3g}", found.greatest),
        fmt::format("less than 2^{} in size, as before", greatest + 1),
        fmt::format("{}: {} of {} elements are far beyond all of the earlier save, the first at "
                    "{}, the greatest {:.3g}, where all were less than 2^{}; a step of training "
                    "does not move single elements so far",
                    to_string(saves_.now.desc(kept.now)), found.beyond, elements(kept), where,
                    found.greatest, greatest + 1));
  }

  void report_zeroed(const Kept& kept, const Comparison& found) {
    Finding finding =
        about_element("RM512", Severity::error, saves_.now, kept.now, found.first_zeroed);
    const std::string where = to_string(*finding.box);
    add(std::move(finding), fmt::format("{} zeroed", found.zeroed), "none",
        fmt::format("{}: {} of {} elements are zero that were not in the earlier save, the first "
                    "at {}; training makes small numbers, not zeros: these bytes were not written",
                    to_string(saves_.now.desc(kept.now)), found.zeroed, elements(kept), where));
  }

  void report_shrunk(const Kept& kept, const Comparison& found) {
    const bool many = 100 * found.shrunk >= elements(kept);
    Finding finding = about_element("RM512", many ? Severity::error : Severity::warn, saves_.now,
                                    kept.now, found.first_shrunk);
    const std::string where = to_string(*finding.box);
    add(std::move(finding), fmt::format("{} below 2^{}", found.shrunk, tiny_exponent), "none",
        fmt::format("{}: {} of {} elements are smaller than 2^{} that were not in the earlier "
                    "save, the first at {}; these bytes are of something else",
                    to_string(saves_.now.desc(kept.now)), found.shrunk, elements(kept),
                    tiny_exponent, where));
  }

  Index elements(const Kept& kept) const { return saves_.now.desc(kept.now).extent.num_elements(); }

  const JudgeContext& context_;
  const TwoSaves& saves_;
  std::vector<Finding>& findings_;
};

}  // namespace

void check_ranges(const JudgeContext& context, const TwoSaves& saves,
                  std::vector<Finding>& findings) {
  RangeCheck check(context, saves, findings);
  for (const Kept& kept : saves.kept) {
    context.stop.check();
    check.check(kept);
  }
}

}  // namespace remesh::detail
