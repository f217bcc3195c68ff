#include "groups.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "remesh/core/error.hpp"

namespace remesh::detail {
namespace {

// How far from the asked value a legal one is looked for: beyond any real mesh.
constexpr Index farthest = Index{1} << 16;

bool divides(const Split& split, Index count) {
  return split.groups % count == 0 || split.beyond == Beyond::divide ||
         (split.beyond == Beyond::share && count % split.groups == 0);
}

Split with_groups(Split split, Index groups, Beyond beyond) {
  split.groups = groups;
  split.beyond = beyond;
  return split;
}

void add_groups(const Split& split, std::vector<Split>& grouped) {
  if (split.groups != 0) grouped.push_back(split);
  for (const Part& part : split.parts) {
    if (part.groups != 0) grouped.push_back(with_groups(split, part.groups, part.beyond));
  }
}

void add_experts(const Pin& pin, std::vector<Split>& grouped) {
  if (pin.to != PinTo::expert) return;
  Split split;
  split.over = {pin.axis};
  split.unit = "experts";
  grouped.push_back(with_groups(std::move(split), pin.experts, Beyond::refuse));
}

// All groups that a mesh has to divide: of splits, of their parts, and experts, each as a split.
std::vector<Split> grouped_splits(std::span<const Placement> placements) {
  std::vector<Split> grouped;
  for (const Placement& placement : placements) {
    for (const Split& split : placement.splits) add_groups(split, grouped);
    for (const Pin& pin : placement.pins) add_experts(pin, grouped);
  }
  return grouped;
}

// The legal values next to `asked` on either side, for the splits over that one axis.
std::vector<Index> nearest_legal(std::span<const Split> splits, const std::string& axis,
                                 Index asked) {
  const std::vector<std::string> over{axis};
  const auto legal = [&](Index count) {
    return std::ranges::all_of(
        splits, [&](const Split& split) { return split.over != over || divides(split, count); });
  };
  std::vector<Index> nearest;
  for (Index count = asked - 1; count > 0 && asked - count < farthest && nearest.empty(); --count) {
    if (legal(count)) nearest.push_back(count);
  }
  for (Index count = asked + 1; count - asked < farthest; ++count) {
    if (!legal(count)) continue;
    nearest.push_back(count);
    break;
  }
  return nearest;
}

std::string advice(std::span<const Split> splits, const Split& split, Index asked) {
  if (split.over.size() != 1) return {};
  const std::string& axis = split.over.front();
  std::vector<std::string> texts;
  for (const Index count : nearest_legal(splits, axis, asked)) {
    texts.push_back(fmt::format("{}={}", axis, count));
  }
  if (texts.empty()) return {};
  return fmt::format("; the nearest legal value{} {}", texts.size() == 1 ? " is" : "s are",
                     fmt::join(texts, " and "));
}

}  // namespace

void check_groups(std::span<const Placement> placements, const Mesh& mesh) {
  const std::vector<Split> splits = grouped_splits(placements);
  for (const Split& split : splits) {
    Index count = 1;
    for (const std::string& axis : split.over) count *= mesh.size(axis);
    if (divides(split, count)) continue;
    const std::string why =
        split.beyond == Beyond::share
            ? fmt::format("and {} neither divides {} nor is a multiple of it", count, split.groups)
            : fmt::format("which {} does not divide", count);
    throw Error(
        Errc::invalid_argument,
        fmt::format("cannot place the model on {}={}: it has {} {}, {}{}",
                    fmt::join(split.over, "*"), count, split.groups,
                    split.unit.empty() ? "groups" : split.unit, why, advice(splits, split, count)));
  }
}

}  // namespace remesh::detail
