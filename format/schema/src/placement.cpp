#include "remesh/schema/placement.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "remesh/core/checked.hpp"
#include "remesh/core/error.hpp"

namespace remesh {
namespace {

// Index `at` of `total` items dealt to `count`, the first ones getting one more.
Range balanced(Index total, Index count, Index at) {
  const Index base = total / count;
  const Index larger = total % count;
  const Index begin = at * base + std::min(at, larger);
  return {begin, begin + base + (at < larger ? 1 : 0)};
}

Range chunk(Index total, Index count, Index at) {
  const Index each = (total + count - 1) / count;
  return {std::min(at * each, total), std::min((at + 1) * each, total)};
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

// Which groups fall to index `at`: a share of them, or one that neighbours share.
Range grouped(const Split& split, Index count, Index at) {
  if (split.groups % count == 0) {
    const Index each = split.groups / count;
    return {at * each, (at + 1) * each};
  }
  if (split.share_groups && count % split.groups == 0) {
    const Index group = at / (count / split.groups);
    return {group, group + 1};
  }
  throw Error(
      Errc::invalid_argument,
      fmt::format("{} {} cannot be divided over {} {}", split.groups,
                  split.unit.empty() ? "groups" : split.unit, fmt::join(split.over, "*"), count));
}

Range share(const Split& split, Index total, Index count, Index at) {
  switch (split.rule) {
    case SplitRule::chunk:
      return chunk(total, count, at);
    case SplitRule::sizes:
      return listed(split, total, count, at);
    case SplitRule::balanced:
      break;
  }
  return balanced(total, count, at);
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
  }
  return {};
}

}  // namespace

Range split_range(const Split& split, Range range, Index count, Index at) {
  const Index total = range.size();
  if (split.groups == 0) {
    const Range part = share(split, total, count, at);
    return {range.begin + part.begin, range.begin + part.end};
  }
  if (total % split.groups != 0) {
    throw Error(Errc::invalid_argument,
                fmt::format("dim {} has {} elements, which {} {} do not divide", split.dim, total,
                            split.groups, split.unit.empty() ? "groups" : split.unit));
  }
  const Range groups = grouped(split, count, at);
  const Index group_size = total / split.groups;
  return {range.begin + groups.begin * group_size, range.begin + groups.end * group_size};
}

std::string to_string(const Placement& placement) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (const Split& split : placement.splits) {
    add(fmt::format("split dim {} over {}", split.dim, fmt::join(split.over, "*")));
  }
  for (const Pin& pin : placement.pins) add(to_string(pin));
  return text.empty() ? "replicated" : text;
}

}  // namespace remesh
