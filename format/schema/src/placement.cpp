#include "remesh/schema/placement.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ranges.hpp"
#include "remesh/core/checked.hpp"
#include "remesh/core/error.hpp"

namespace remesh {
namespace {

using detail::blocks_in;
using detail::size_of;
using detail::take_run;

// Index `at` of `total` items dealt to `count`, the first ones getting one more.
Range balanced(Index total, Index count, Index at) {
  const Index base = total / count;
  const Index larger = total % count;
  const Index begin = at * base + std::min(at, larger);
  return {begin, begin + base + (at < larger ? 1 : 0)};
}

Range chunk(Index total, Index count, Index at) {
  const Index each = blocks_in(total, count);
  if (each == 0 || at > total / each) return {total, total};
  return {at * each, std::min(each, total - at * each) + at * each};
}

Range listed(const Split& split, Index total, Index count, Index at) {
  // -1: more than 63 bits count, and so none that could be right.
  Index sum = 0;
  for (const Index size : split.sizes) {
    sum = sum < 0 || size < 0 ? -1 : checked_add(sum, size).value_or(-1);
  }
  if (static_cast<Index>(split.sizes.size()) != count || sum != total) {
    throw Error(Errc::invalid_argument,
                fmt::format("dim {} has {} elements over {} coordinates, but {} sizes are listed "
                            "that add up to {}",
                            split.dim, total, count, split.sizes.size(), sum));
  }
  const auto first = split.sizes.begin();
  const Index begin = std::accumulate(first, first + at, Index{0});
  return {begin, begin + split.sizes[static_cast<std::size_t>(at)]};
}

// Whole blocks are dealt; the last one may be smaller.
Range plain(const Split& split, Index total, Index count, Index at) {
  if (split.rule == SplitRule::sizes) return listed(split, total, count, at);
  const Index blocks = blocks_in(total, split.block);
  const Range dealt =
      split.rule == SplitRule::chunk ? chunk(blocks, count, at) : balanced(blocks, count, at);
  const auto border = [&](Index number) { return number == blocks ? total : number * split.block; };
  return {border(dealt.begin), border(dealt.end)};
}

std::string_view unit_of(const Split& split) {
  return split.unit.empty() ? std::string_view("groups") : std::string_view(split.unit);
}

// A run of indices by itself: all of a dim, or one part of it.
Range share_of(const Split& split, const Part& part, Index count, Index at) {
  if (part.groups == 0) return plain(split, part.size, count, at);
  if (part.size % part.groups != 0) {
    throw Error(Errc::invalid_argument,
                fmt::format("dim {} has {} elements, which {} {} do not divide", split.dim,
                            part.size, part.groups, unit_of(split)));
  }
  const Index group_size = part.size / part.groups;
  if (part.groups % count == 0) {
    const Index each = part.groups / count;
    return {at * each * group_size, (at + 1) * each * group_size};
  }
  if (part.beyond == Beyond::share && count % part.groups == 0) {
    const Index group = at / (count / part.groups);
    return {group * group_size, (group + 1) * group_size};
  }
  if (part.beyond == Beyond::divide) return plain(split, part.size, count, at);
  throw Error(Errc::invalid_argument,
              fmt::format("{} {} cannot be divided over {} {}", part.groups, unit_of(split),
                          fmt::join(split.over, "*"), count));
}

// A border is new where none of what is divided begins or ends.
void check_borders(const Split& split, std::span<const Range> ranges,
                   std::span<const Range> taken) {
  const auto check = [&](Index border, Index Range::*end) {
    if (border % split.block == 0 || std::ranges::find(ranges, border, end) != ranges.end()) return;
    throw Error(
        Errc::invalid_argument,
        fmt::format("dim {} would be cut at {}, but it is in blocks of {}{}", split.dim, border,
                    split.block, split.unit.empty() ? "" : fmt::format(" ({})", split.unit)));
  };
  for (const Range& range : taken) {
    check(range.begin, &Range::begin);
    check(range.end, &Range::end);
  }
}

std::vector<Range> divided(const Split& split, std::span<const Range> ranges, Index count,
                           Index at) {
  const Index total = size_of(ranges);
  std::vector<Range> taken;
  if (split.parts.empty()) {
    take_run(ranges, share_of(split, {total, split.groups, split.beyond}, count, at), taken);
  } else {
    Index begin = 0;
    for (const Part& part : split.parts) {
      const Range share = share_of(split, part, count, at);
      take_run(ranges, {begin + share.begin, begin + share.end}, taken);
      begin += part.size;
    }
    if (begin != total) {
      throw Error(Errc::invalid_argument, fmt::format("dim {} has {} elements, but its {} parts {}",
                                                      split.dim, total, split.parts.size(), begin));
    }
  }
  if (split.block > 1) check_borders(split, ranges, taken);
  return taken;
}

// Divides what the scales stand for, and comes back to them.
std::vector<Range> divided_scales(const Split& of_weight, const Scaled& scaled,
                                  std::span<const Range> ranges, Index count, Index at) {
  // No more of them than the weight has, so that no product leaves 63 bits.
  const Index all = blocks_in(scaled.of, scaled.block);
  if (!ranges.empty() && ranges.back().end > all) {
    throw Error(Errc::invalid_argument,
                fmt::format("dim {} goes up to {}, but one scale for each {} of {} is {}",
                            scaled.dim, ranges.back().end, scaled.block, scaled.of, all));
  }
  std::vector<Range> of_rows;
  for (const Range& range : ranges) {
    of_rows.push_back({range.begin * scaled.block, std::min(range.end * scaled.block, scaled.of)});
  }
  std::vector<Range> taken = divided(of_weight, of_rows, count, at);
  for (Range& range : taken) {
    range = {range.begin / scaled.block, blocks_in(range.end, scaled.block)};
  }
  return taken;
}

std::string to_string(const Pin& pin) {
  switch (pin.to) {
    case PinTo::coordinates:
      return fmt::format("pinned to {} {}", pin.axis, fmt::join(pin.coordinates, "+"));
    case PinTo::layer:
      return fmt::format("pinned to its layer's {}", pin.axis);
    case PinTo::first:
      return fmt::format("pinned to the first {}", pin.axis);
    case PinTo::last:
      return fmt::format("pinned to the last {}", pin.axis);
    case PinTo::ends:
      return fmt::format("pinned to the first and last {}", pin.axis);
    case PinTo::expert:
      return fmt::format("pinned to its expert's {}", pin.axis);
  }
  return {};
}

std::string to_string(const Flat& flat) {
  const std::string_view of = flat.unit == FlatUnit::all     ? ""
                              : flat.unit == FlatUnit::layer ? " of its layer"
                                                             : " of its own";
  return fmt::format("a range of the line{}{} over {}", flat.name.empty() ? "" : " " + flat.name,
                     of, fmt::join(flat.over, "*"));
}

}  // namespace

std::vector<Range> split_ranges(const Split& split, std::span<const Range> ranges, Index count,
                                Index at) {
  return divided(split, ranges, count, at);
}

std::vector<Range> split_ranges(const Split& split, const Scaled& scaled,
                                std::span<const Range> ranges, Index count, Index at) {
  Split in_blocks = split;
  in_blocks.block = std::lcm(split.block, scaled.block);
  return scaled.of > 0 ? divided_scales(in_blocks, scaled, ranges, count, at)
                       : divided(in_blocks, ranges, count, at);
}

const Scaled* scaled_dim(const Placement& placement, int dim) noexcept {
  const auto found = std::ranges::find(placement.scaled, dim, &Scaled::dim);
  return found == placement.scaled.end() ? nullptr : &*found;
}

Range split_range(const Split& split, Range range, Index count, Index at) {
  const Range share = share_of(split, {range.size(), split.groups, split.beyond}, count, at);
  const Range part{range.begin + share.begin, range.begin + share.end};
  if (split.block > 1) check_borders(split, {&range, 1}, {&part, 1});
  return part;
}

std::string to_string(const Placement& placement) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (const Split& split : placement.splits) {
    add(fmt::format("split dim {}{} over {}", split.dim,
                    split.parts.empty() ? "" : fmt::format(" in {} parts", split.parts.size()),
                    fmt::join(split.over, "*")));
  }
  for (const Pin& pin : placement.pins) add(to_string(pin));
  if (placement.flat) add(to_string(*placement.flat));
  for (const Scaled& scaled : placement.scaled) {
    add(fmt::format("dim {} {} {}", scaled.dim, scaled.of > 0 ? "scales of" : "in blocks of",
                    scaled.block));
  }
  return text.empty() ? "replicated" : text;
}

}  // namespace remesh
