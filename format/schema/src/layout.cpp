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

[[noreturn]] void fail(const std::string& why) { throw Error(Errc::invalid_argument, why); }

void check_number(const char* what, Index value, Index least, Index most) {
  if (value >= least && value <= most) return;
  fail(fmt::format("{} of a placement is {}, but a number from {} to {} is expected", what, value,
                   least, most));
}

void check_count(const char* what, std::size_t count, std::size_t most) {
  if (count > most)
    fail(fmt::format("a placement has {} {}, but at most {} are possible", count, what, most));
}

// An axis can count only once; and the two grids have no coordinates in common but those of pp.
void check_axes(const Placement& placement, const Mesh& mesh) {
  std::vector<std::string_view> axes = divided_over(placement);
  std::ranges::sort(axes);
  if (const auto twice = std::ranges::adjacent_find(axes); twice != axes.end()) {
    fail(fmt::format("a placement is divided over '{}' twice", *twice));
  }
  for (const Pin& pin : placement.pins) {
    if (!std::ranges::binary_search(axes, std::string_view(pin.axis))) continue;
    fail(fmt::format("a placement is divided over '{0}', and pinned to some of '{0}'", pin.axis));
  }
  for (const Pin& pin : placement.pins) axes.push_back(pin.axis);
  std::string_view dense;
  std::string_view expert;
  for (const std::string_view axis : axes) {
    if (axis == "pp") continue;
    const bool of_experts =
        std::ranges::find(experts_only, axis) != experts_only.end() ||
        std::ranges::find(mesh.expert_axes(), axis, &Axis::name) != mesh.expert_axes().end();
    (of_experts ? expert : dense) = axis;
  }
  if (dense.empty() || expert.empty()) return;
  fail(fmt::format("a placement uses '{}' and '{}', which are axes of two grids", dense, expert));
}

void check_split(const Split& split) {
  check_count("axes in a split", split.over.size(), most_steps);
  check_count("parts", split.parts.size(), most_steps);
  check_count("listed sizes", split.sizes.size(), most_listed);
  check_number("a block", split.block, 1, most_block);
  for (const Part& part : split.parts) check_number("a part", part.size, 0, most_run);
}

void check_flat(const Flat& flat) {
  check_count("axes in a line", flat.over.size(), most_steps);
  check_number("the alignment", flat.align, 1, most_padding);
  check_number("the bucket", flat.bucket, 0, most_run);
  check_number("the padding", flat.pad, 1, most_padding);
  check_number("the padding of each range", flat.pad_each, 1, most_padding);
}

void check_placement(const Placement& placement, const Mesh& mesh) {
  check_count("splits", placement.splits.size(), most_steps);
  check_count("pins", placement.pins.size(), most_steps);
  for (const Split& split : placement.splits) check_split(split);
  if (placement.flat) check_flat(*placement.flat);
  for (const Scaled& scaled : placement.scaled) {
    check_number("a block", scaled.block, 1, most_block);
    check_number("what scales are of", scaled.of, 0, most_run);
    check_number("a dim", scaled.dim, 0, max_ndim - 1);
    if (std::ranges::count(placement.scaled, scaled.dim, &Scaled::dim) > 1) {
      fail(fmt::format("a placement has dim {} in blocks twice", scaled.dim));
    }
  }
  if (placement.flat && !placement.scaled.empty()) {
    fail("a placement is in blocks that have scales, and a range of a line, which would cut them");
  }
  check_axes(placement, mesh);
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
  for (const Placement& placement : placements_) check_placement(placement, mesh_);
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
