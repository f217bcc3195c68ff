#include "remesh/schema/layout.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "groups.hpp"
#include "remesh/core/error.hpp"
#include "uneven.hpp"

namespace remesh {
namespace {

bool pinned_here(const Pin& pin, const Mesh& mesh, const Stages& stages, Index layer, Rank rank) {
  const Index at = mesh.coordinate(rank, pin.axis);
  const Index last = mesh.size(pin.axis) - 1;
  switch (pin.to) {
    case PinTo::coordinates:
      return std::ranges::binary_search(pin.coordinates, at);
    case PinTo::layer:
      return stages.stage_of(layer) == at;
    case PinTo::first:
      return at == 0;
    case PinTo::last:
      return at == last;
    case PinTo::ends:
      return at == 0 || at == last;
  }
  return false;
}

// The axes of a split as one index: how many there are, and where the rank sits.
struct Joint {
  Index count = 1;
  Index at = 0;
};

Joint joint_index(const Split& split, const Mesh& mesh, Rank rank) {
  Joint joint;
  for (const std::string& axis : split.over) {
    joint.at += joint.count * mesh.coordinate(rank, axis);
    joint.count *= mesh.size(axis);
  }
  return joint;
}

bool uses(const Placement& placement, const std::string& axis) {
  const auto over = [&](const Split& split) { return std::ranges::count(split.over, axis) > 0; };
  const auto pins = [&](const Pin& pin) { return pin.axis == axis; };
  return std::ranges::any_of(placement.splits, over) || std::ranges::any_of(placement.pins, pins);
}

bool by_layer(const Placement& placement) {
  return std::ranges::any_of(placement.pins, [](const Pin& pin) { return pin.to == PinTo::layer; });
}

// As one index, an axis can count only once.
void check_axes(const Placement& placement) {
  for (const Split& split : placement.splits) {
    for (std::size_t at = 0; at < split.over.size(); ++at) {
      const auto first = split.over.begin();
      if (std::find(first, first + static_cast<std::ptrdiff_t>(at), split.over[at]) ==
          first + static_cast<std::ptrdiff_t>(at)) {
        continue;
      }
      throw Error(Errc::invalid_argument,
                  fmt::format("a split is over '{}' twice", split.over[at]));
    }
  }
}

void check_split(const Split& split, const TensorDesc& desc) {
  if (split.dim < 0 || split.dim >= desc.extent.ndim()) {
    throw Error(Errc::invalid_argument,
                fmt::format("cannot place {}: its placement splits dim {}, but it has {} dims",
                            to_string(desc), split.dim, desc.extent.ndim()));
  }
}

}  // namespace

Index Stages::num_layers() const noexcept {
  Index sum = 0;
  for (const Index count : layers) sum += count;
  return sum;
}

Index Stages::stage_of(Index layer) const {
  Index end = 0;
  for (std::size_t stage = 0; stage < layers.size(); ++stage) {
    end += layers[stage];
    if (layer >= 0 && layer < end) return static_cast<Index>(stage);
  }
  throw Error(Errc::invalid_argument,
              fmt::format("layer {} is on no stage: the stages have {} layers", layer, end));
}

Stages even_stages(Index num_layers, Index num_stages) {
  if (num_stages > num_layers) {
    throw Error(Errc::invalid_argument,
                fmt::format("cannot deal {} layers to {} pipeline stages: a stage would be empty; "
                            "the nearest legal pp is {}",
                            num_layers, num_stages, num_layers));
  }
  Stages stages;
  const Split even;
  for (Index stage = 0; stage < num_stages; ++stage) {
    stages.layers.push_back(split_range(even, {0, num_layers}, num_stages, stage).size());
  }
  return stages;
}

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
  if (!stages_.layers.empty() && static_cast<Index>(stages_.layers.size()) != pp) {
    throw Error(
        Errc::invalid_argument,
        fmt::format("a layout lists {} stages, but its mesh has pp {}", stages_.layers.size(), pp));
  }
  for (const Placement& placement : placements_) check_axes(placement);
  const Index num_layers = stages_.num_layers();
  for (const Placed& tensor : placed_) {
    if (tensor.placement >= placements_.size()) {
      throw Error(Errc::invalid_argument,
                  fmt::format("a tensor has placement {}, but the layout lists {}",
                              tensor.placement, placements_.size()));
    }
    const bool beyond = num_layers > 0 && tensor.layer >= num_layers;
    if (beyond || (by_layer(placements_[tensor.placement]) &&
                   (tensor.layer < 0 || tensor.layer >= num_layers))) {
      throw Error(Errc::invalid_argument,
                  fmt::format("a tensor is of layer {}, but the layout has {} layers", tensor.layer,
                              num_layers));
    }
  }
}

const Placement& Layout::placement(std::size_t tensor) const {
  return placements_.at(placed_.at(tensor).placement);
}

std::optional<Box> Layout::box(std::size_t tensor, const TensorDesc& desc, Rank rank) const {
  const Placement& how = placement(tensor);
  for (const Pin& pin : how.pins) {
    if (!pinned_here(pin, mesh_, stages_, placed_[tensor].layer, rank)) return std::nullopt;
  }
  Box box = desc.extent;
  for (const Split& split : how.splits) {
    check_split(split, desc);
    const Joint joint = joint_index(split, mesh_, rank);
    try {
      box[split.dim] = split_range(split, box[split.dim], joint.count, joint.at);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("cannot place {}: {}", to_string(desc), error.what()));
    }
  }
  return box;
}

std::vector<HeldBox> Layout::boxes(std::size_t tensor, const TensorDesc& desc) const {
  const bool no_elements = desc.extent.empty();
  std::map<Box, std::vector<Rank>> holders;
  for (Rank rank = 0; rank < mesh_.num_ranks(); ++rank) {
    const std::optional<Box> held = box(tensor, desc, rank);
    if (!held || (held->empty() && !no_elements)) continue;
    holders[no_elements ? desc.extent : *held].push_back(rank);
  }
  std::vector<HeldBox> boxes;
  boxes.reserve(holders.size());
  for (auto& [held, ranks] : holders) boxes.push_back({held, std::move(ranks)});
  return boxes;
}

std::vector<Piece> Layout::pieces(std::size_t tensor, const TensorDesc& desc) const {
  std::vector<Piece> pieces;
  for (const HeldBox& held : boxes(tensor, desc)) {
    for (const Rank rank : held.holders) pieces.push_back({rank, held.box});
  }
  return pieces;
}

Layout Layout::on(Mesh mesh) const {
  for (const Axis& axis : mesh.axes()) {
    const bool replicates = axis.name == "dp" || axis.name == "cp";
    if (axis.size == 1 || replicates || placed_.empty()) continue;
    if (std::ranges::none_of(placements_,
                             [&](const Placement& how) { return uses(how, axis.name); })) {
      throw Error(
          Errc::unsupported,
          fmt::format("cannot place the tensors on {} {}: no rule of their layout uses that "
                      "axis; give rules that do with `--rules FILE`",
                      axis.name, axis.size));
    }
  }
  detail::check_groups(placements_, mesh);
  Stages stages;
  if (!stages_.layers.empty()) stages = even_stages(stages_.num_layers(), mesh.size("pp"));
  return {std::move(mesh), placements_, placed_, std::move(stages)};
}

std::vector<std::string> uneven_splits(const Layout& layout, std::span<const TensorDesc> tensors) {
  detail::UnevenSplits uneven(layout);
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    uneven.look_at(layout.placement(tensor), tensors[tensor]);
  }
  return uneven.take();
}

}  // namespace remesh
