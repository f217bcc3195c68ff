#include "remesh/schema/layout.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "groups.hpp"
#include "remesh/core/error.hpp"
#include "uneven.hpp"

namespace remesh {
namespace {

constexpr std::array<std::string_view, 3> dense_only{"tp", "cp", "dp"};
constexpr std::array<std::string_view, 3> experts_only{"etp", "ep", "edp"};

// The axes over which a placement is divided.
std::vector<std::string_view> divided_over(const Placement& placement) {
  std::vector<std::string_view> axes;
  for (const Split& split : placement.splits) {
    axes.insert(axes.end(), split.over.begin(), split.over.end());
  }
  if (placement.flat) {
    axes.insert(axes.end(), placement.flat->over.begin(), placement.flat->over.end());
  }
  return axes;
}

bool uses(const Placement& placement, std::string_view axis) {
  const auto pins = [&](const Pin& pin) { return pin.axis == axis; };
  return std::ranges::count(divided_over(placement), axis) > 0 ||
         std::ranges::any_of(placement.pins, pins);
}

bool pins_by(const Placement& placement, PinTo to) {
  return std::ranges::any_of(placement.pins, [to](const Pin& pin) { return pin.to == to; });
}

template <std::size_t n>
std::string_view first_of(const Placement& placement, const std::array<std::string_view, n>& axes) {
  const auto found =
      std::ranges::find_if(axes, [&](std::string_view axis) { return uses(placement, axis); });
  return found == axes.end() ? std::string_view() : *found;
}

// An axis can count only once, and the two grids have no coordinates in common but those of pp.
void check_axes(const Placement& placement) {
  std::vector<std::string_view> axes = divided_over(placement);
  std::ranges::sort(axes);
  if (const auto twice = std::ranges::adjacent_find(axes); twice != axes.end()) {
    throw Error(Errc::invalid_argument,
                fmt::format("a placement is divided over '{}' twice", *twice));
  }
  const std::string_view dense = first_of(placement, dense_only);
  const std::string_view expert = first_of(placement, experts_only);
  if (dense.empty() || expert.empty()) return;
  throw Error(
      Errc::invalid_argument,
      fmt::format("a placement uses '{}' and '{}', which are axes of two grids", dense, expert));
}

void check_flat(const Flat& flat) {
  constexpr Index most = Index{1} << 40;
  const auto check = [&](const char* what, Index value, Index least) {
    if (value >= least && value <= most) return;
    throw Error(Errc::invalid_argument,
                fmt::format("{} of a line is {}, but a number from {} to {} "
                            "is expected",
                            what, value, least, most));
  };
  check("the alignment", flat.align, 1);
  check("the bucket", flat.bucket, 0);
  check("the padding", flat.pad, 1);
  check("the padding of each range", flat.pad_each, 1);
}

void check_numbers(const Split& split) {
  if (split.block >= 1 && split.per >= 1 && (split.per == 1 || split.block == 1) &&
      split.groups >= 0 && split.whole >= 0) {
    return;
  }
  throw Error(
      Errc::invalid_argument,
      fmt::format("a split has blocks of {} and {} for each index of {}; one of the two must "
                  "be 1, and none below",
                  split.block, split.per, split.whole));
}

void check_placement(const Placement& placement) {
  check_axes(placement);
  for (const Split& split : placement.splits) check_numbers(split);
  if (placement.flat) check_flat(*placement.flat);
}

void check_layer(const Placement& placement, const Placed& tensor, Index num_layers) {
  const bool beyond = num_layers > 0 && tensor.layer >= num_layers;
  if (beyond ||
      (pins_by(placement, PinTo::layer) && (tensor.layer < 0 || tensor.layer >= num_layers))) {
    throw Error(Errc::invalid_argument,
                fmt::format("a tensor is of layer {}, but the layout has {} layers", tensor.layer,
                            num_layers));
  }
}

void check_expert(const Placement& placement, const Placed& tensor) {
  for (const Pin& pin : placement.pins) {
    if (pin.to != PinTo::expert || (tensor.expert >= 0 && tensor.expert < pin.experts)) continue;
    throw Error(Errc::invalid_argument,
                fmt::format("a tensor is of expert {}, but there are {} experts", tensor.expert,
                            pin.experts));
  }
}

// An axis that nothing is divided over and nothing pinned to holds copies, which only data and
// context parallelism are meant to.
void check_used(std::span<const Axis> axes, const Layout& layout) {
  constexpr std::array<std::string_view, 3> replicate{"dp", "cp", "edp"};
  for (const Axis& axis : axes) {
    const bool replicates = std::ranges::find(replicate, axis.name) != replicate.end();
    if (axis.size == 1 || replicates || layout.placed().empty()) continue;
    if (std::ranges::any_of(layout.placements(),
                            [&](const Placement& how) { return uses(how, axis.name); })) {
      continue;
    }
    throw Error(Errc::unsupported,
                fmt::format("cannot place the tensors on {} {}: no rule of their layout uses that "
                            "axis; give rules that do with `--rules FILE`",
                            axis.name, axis.size));
  }
}

}  // namespace

Layout Layout::replicated(Mesh mesh, std::size_t num_tensors) {
  return Layout(std::move(mesh), {Placement{}}, std::vector<Placed>(num_tensors), {});
}

Layout::Layout(Mesh mesh, std::vector<Placement> placements, std::vector<Placed> placed,
               Stages stages)
    : mesh_(std::move(mesh)),
      placements_(std::move(placements)),
      placed_(std::move(placed)),
      stages_(std::move(stages)) {
  const Index pp = mesh_.size("pp");
  const Index stages_wanted = pp * mesh_.virtual_stages();
  if (!stages_.layers.empty() && std::ssize(stages_.layers) != stages_wanted) {
    throw Error(
        Errc::invalid_argument,
        fmt::format(
            "a layout lists {} stages, but its mesh has pp {}{}", stages_.layers.size(), pp,
            mesh_.virtual_stages() == 1 ? "" : fmt::format(" and vpp {}", mesh_.virtual_stages())));
  }
  for (const Placement& placement : placements_) check_placement(placement);
  const Index num_layers = stages_.num_layers();
  for (const Placed& tensor : placed_) {
    if (tensor.placement >= placements_.size()) {
      throw Error(Errc::invalid_argument,
                  fmt::format("a tensor has placement {}, but the layout lists {}",
                              tensor.placement, placements_.size()));
    }
    check_layer(placements_[tensor.placement], tensor, num_layers);
    check_expert(placements_[tensor.placement], tensor);
  }
}

const Placement& Layout::placement(std::size_t tensor) const {
  return placements_.at(placed_.at(tensor).placement);
}

Layout Layout::on(Mesh mesh, const std::optional<StageRule>& stages) const {
  check_used(mesh.axes(), *this);
  check_used(mesh.expert_axes(), *this);
  detail::check_groups(placements_, mesh);
  Stages dealt = stages_;
  const Index all = mesh.size("pp") * mesh.virtual_stages();
  if (!stages_.layers.empty() && (stages || std::ssize(stages_.layers) != all)) {
    dealt = stages.value_or(StageRule())
                .deal(stages_.num_layers(), mesh.size("pp"), mesh.virtual_stages());
  }
  return {std::move(mesh), placements_, placed_, std::move(dealt)};
}

std::vector<std::string> uneven_splits(const Layout& layout, std::span<const TensorDesc> tensors) {
  detail::UnevenSplits uneven(layout);
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    uneven.look_at(layout.placement(tensor), tensors[tensor]);
  }
  return uneven.take();
}

}  // namespace remesh
