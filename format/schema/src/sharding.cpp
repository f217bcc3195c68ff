#include "remesh/schema/sharding.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "remesh/core/error.hpp"
#include "remesh/schema/states.hpp"

namespace remesh {
namespace {

constexpr std::array<std::string_view, 3> data_axes{"cp", "dp", "edp"};

bool is_data_axis(std::string_view axis) {
  return std::ranges::find(data_axes, axis) != data_axes.end();
}

bool is_of_experts(const Placement& placement) {
  const auto is_expert_axis = [](std::string_view axis) { return axis == "etp" || axis == "ep"; };
  return std::ranges::any_of(
             placement.splits,
             [&](const Split& split) { return std::ranges::any_of(split.over, is_expert_axis); }) ||
         std::ranges::any_of(placement.pins,
                             [&](const Pin& pin) { return is_expert_axis(pin.axis); });
}

// The axes of data parallelism, the fastest first.
std::vector<std::string> axes_of(const Mesh& mesh, const Placement& placement) {
  if (is_of_experts(placement)) return {"edp"};
  std::vector<std::string> axes;
  for (const Axis& axis : mesh.axes()) {
    if (axis.name == "cp" || axis.name == "dp") axes.push_back(axis.name);
  }
  for (const char* axis : {"cp", "dp"}) {
    if (std::ranges::find(axes, axis) == axes.end()) axes.emplace_back(axis);
  }
  return axes;
}

Placement undivided(const Placement& placement) {
  Placement whole = placement;
  std::erase_if(whole.splits,
                [](const Split& split) { return std::ranges::all_of(split.over, is_data_axis); });
  whole.flat.reset();
  return whole;
}

class Sharder {
 public:
  Sharder(const Layout& layout, const Sharding& sharding)
      : layout_(layout),
        sharding_(sharding),
        rule_(sharding.rule.value_or(sharding.zero == 3 ? ShardRule::chunk : ShardRule::flat)) {}

  Placement shard(const Placement& placement, const TensorDesc& desc, bool is_state) const {
    Placement placed = undivided(placement);
    const bool wanted = sharding_.zero == 3 || (sharding_.zero > 0 && is_state);
    if (!wanted || desc.extent.ndim() == 0) return placed;
    std::vector<std::string> axes = axes_of(layout_.mesh(), placed);
    if (rule_ == ShardRule::chunk) {
      Split chunk;
      chunk.over = std::move(axes);
      chunk.rule = SplitRule::chunk;
      placed.splits.push_back(std::move(chunk));
      return placed;
    }
    if (!placed.scaled.empty()) {
      throw Error(
          Errc::unsupported,
          fmt::format(
              "cannot place {} on a line: it is in blocks that have scales, which a range would "
              "cut; say `--shard-rule chunk`",
              to_string(desc)));
    }
    placed.flat = line_of(desc, is_state, std::move(axes));
    return placed;
  }

 private:
  Flat line_of(const TensorDesc& desc, bool is_state, std::vector<std::string> axes) const {
    Flat line;
    if (sharding_.line) {
      line = *sharding_.line;
    } else if (sharding_.zero == 3) {
      line.unit = FlatUnit::tensor;
    } else {
      line.pad_each = 2;
    }
    line.over = std::move(axes);
    const auto name = is_state ? parse_state_name(desc.name) : std::nullopt;
    line.name = name ? std::string(name->state) : std::string();
    return line;
  }

  const Layout& layout_;
  const Sharding& sharding_;
  const ShardRule rule_;
};

}  // namespace

Layout sharded(const Layout& layout, std::span<const TensorDesc> tensors,
               const Sharding& sharding) {
  const Sharder sharder(layout, sharding);
  const std::vector<std::int64_t> parameters = parameters_of(tensors);
  std::vector<Placement> placements;
  std::vector<Placed> placed(layout.placed().begin(), layout.placed().end());
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    Placement how =
        sharder.shard(layout.placement(tensor), tensors[tensor], parameters[tensor] >= 0);
    const auto same = std::ranges::find(placements, how);
    placed[tensor].placement = static_cast<std::uint32_t>(same - placements.begin());
    if (same == placements.end()) placements.push_back(std::move(how));
  }
  return {layout.mesh(), std::move(placements), std::move(placed), layout.stages()};
}

}  // namespace remesh
