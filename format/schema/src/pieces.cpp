#include "remesh/schema/pieces.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "lines.hpp"
#include "local.hpp"
#include "remesh/schema/coverage.hpp"

namespace remesh {
namespace {

using Holders = std::map<Box, std::vector<Rank>>;

// A rank's coordinate along an axis is rank / stride % size.
struct AxisInGrid {
  Index stride = 1;
  Index size = 1;

  friend bool operator==(const AxisInGrid&, const AxisInGrid&) = default;
};

void add_axis(std::string_view name, const Mesh& mesh, std::vector<AxisInGrid>& axes) {
  if (mesh.expert_axes().empty() && name == "etp") return add_axis("tp", mesh, axes);
  if (mesh.expert_axes().empty() && name == "edp") {
    add_axis("cp", mesh, axes);
    return add_axis("dp", mesh, axes);
  }
  for (const std::span<const Axis> grid : {mesh.axes(), mesh.expert_axes()}) {
    AxisInGrid found;
    for (const Axis& axis : grid) {
      found.size = axis.size;
      if (axis.name == name) {
        if (std::ranges::find(axes, found) == axes.end()) axes.push_back(found);
        return;
      }
      found.stride *= axis.size;
    }
  }
}

std::vector<AxisInGrid> axes_used(const Placement& how, const Mesh& mesh) {
  std::vector<AxisInGrid> axes;
  for (const Pin& pin : how.pins) add_axis(pin.axis, mesh, axes);
  for (const Split& split : how.splits) {
    for (const std::string& axis : split.over) add_axis(axis, mesh, axes);
  }
  if (how.flat) {
    for (const std::string& axis : how.flat->over) add_axis(axis, mesh, axes);
  }
  return axes;
}

// The coordinates along some axes as one number: of both grids at most, less than 2^62.
Index seat_of(const std::vector<AxisInGrid>& axes, Rank rank) {
  Index seat = 0;
  for (const AxisInGrid& axis : axes) seat = seat * axis.size + rank / axis.stride % axis.size;
  return seat;
}

bool are_disjoint(const Box& extent, const Holders& holders) {
  std::vector<Box> boxes;
  boxes.reserve(holders.size());
  for (const auto& [box, ranks] : holders) boxes.push_back(box);
  return cover(extent, boxes).doubled.empty();
}

// Adds a box to disjoint cells: what it shares with one becomes a cell of its own.
Holders with_box(const Holders& cells, const Box& box, const std::vector<Rank>& ranks) {
  std::vector<Box> left{box};
  Holders all;
  for (const auto& [cell, holders] : cells) {
    const auto shared = intersect(cell, box);
    if (!shared) {
      all.emplace(cell, holders);
      continue;
    }
    for (const Box& rest : subtract(cell, *shared)) all.emplace(rest, holders);
    std::vector<Rank>& both = all[*shared];
    both = holders;
    both.insert(both.end(), ranks.begin(), ranks.end());
    left = without(left, *shared);
  }
  for (const Box& one : left) all.emplace(one, ranks);
  return all;
}

// Cuts boxes that share elements into those that do and those that do not.
Holders apart(const Holders& overlapping) {
  Holders cells;
  for (const auto& [box, ranks] : overlapping) cells = with_box(cells, box, ranks);
  for (auto& [box, ranks] : cells) std::ranges::sort(ranks);
  return cells;
}

}  // namespace

struct Pieces::Lines : detail::Lines {
  using detail::Lines::Lines;
};

Pieces::Pieces(const Layout& layout, std::span<const TensorDesc> tensors)
    : layout_(&layout), tensors_(tensors) {
  if (detail::has_lines(layout)) lines_ = std::make_unique<Lines>(layout, tensors);
}

Pieces::Pieces(Pieces&&) noexcept = default;
Pieces& Pieces::operator=(Pieces&&) noexcept = default;
Pieces::~Pieces() = default;

std::vector<Box> Pieces::on(std::size_t tensor, Rank rank) const {
  const TensorDesc& desc = tensors_[tensor];
  const auto local = detail::local_of(*layout_, tensor, desc, rank);
  if (!local) return {};
  if (desc.extent.empty()) return {desc.extent};
  Range run{0, local->num_elements()};
  if (layout_->placement(tensor).flat) run = lines_->range_of(tensor, rank, run.end);
  return detail::boxes_of(*local, run.begin, run.end);
}

// Replicas are cut at the same places, but for lines of different lengths, and for shared groups
// that lie beside others which are not.
bool Pieces::may_be_cut(std::size_t tensor) const {
  const Placement& how = layout_->placement(tensor);
  return how.flat ||
         std::ranges::any_of(how.splits, [](const Split& split) { return !split.parts.empty(); });
}

// Ranks with the same coordinates along the axes that a placement uses hold the same: what they
// hold is worked out once.
std::vector<HeldBox> Pieces::of(std::size_t tensor) const {
  const Box& extent = tensors_[tensor].extent;
  const Mesh& mesh = layout_->mesh();
  const Placement& how = layout_->placement(tensor);
  // On a line, what lies before a tensor may depend on any axis.
  const bool on_line = how.flat && how.flat->unit != FlatUnit::tensor;
  const std::vector<AxisInGrid> axes = on_line ? std::vector<AxisInGrid>{} : axes_used(how, mesh);
  Holders holders;
  std::unordered_map<Index, std::vector<std::vector<Rank>*>> known;
  for (Rank rank = 0; rank < mesh.num_ranks(); ++rank) {
    const auto [seat, is_new] = known.try_emplace(on_line ? rank : seat_of(axes, rank));
    if (is_new) {
      for (const Box& box : on(tensor, rank)) seat->second.push_back(&holders[box]);
    }
    for (std::vector<Rank>* ranks : seat->second) ranks->push_back(rank);
  }
  if (may_be_cut(tensor) && !are_disjoint(extent, holders)) {
    holders = apart(holders);
  }
  std::vector<HeldBox> boxes;
  boxes.reserve(holders.size());
  for (auto& [box, ranks] : holders) boxes.push_back({box, std::move(ranks)});
  return boxes;
}

}  // namespace remesh
