#include "remesh/schema/mesh.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/error.hpp"
#include "remesh/schema/stages.hpp"

namespace remesh {
namespace {

constexpr Index most_ranks = Index{1} << 31;

[[noreturn]] void fail(const std::string& why) {
  throw Error(Errc::invalid_argument, "cannot build a mesh: " + why);
}

void check_axis(const Axis& axis, Index ranks_so_far) {
  if (axis.size < 1) {
    fail(fmt::format("axis '{}' has size {}, but a size is at least 1", axis.name, axis.size));
  }
  if (axis.size > most_ranks / ranks_so_far) {
    fail(fmt::format("with axis '{}' of size {} it has more than {} ranks", axis.name, axis.size,
                     most_ranks));
  }
}

void check_grid(std::span<const Axis> axes) {
  Index ranks = 1;
  for (auto axis = axes.begin(); axis != axes.end(); ++axis) {
    check_axis(*axis, ranks);
    ranks *= axis->size;
    if (std::find_if(axes.begin(), axis,
                     [&](const Axis& earlier) { return earlier.name == axis->name; }) != axis) {
      fail(fmt::format("axis '{}' stands twice", axis->name));
    }
  }
}

const Axis* find(std::span<const Axis> axes, std::string_view name) {
  const auto found = std::ranges::find(axes, name, &Axis::name);
  return found == axes.end() ? nullptr : &*found;
}

Index product(std::span<const Axis> axes) {
  Index ranks = 1;
  for (const Axis& axis : axes) ranks *= axis.size;
  return ranks;
}

Index coordinate_in(std::span<const Axis> axes, Rank rank, std::string_view name) {
  for (const Axis& axis : axes) {
    if (axis.name == name) return rank % axis.size;
    rank /= axis.size;
  }
  return 0;
}

// How many neighbours along a grid's faster axes share one coordinate of `name`.
Index stride_of(std::span<const Axis> axes, std::string_view name) {
  Index stride = 1;
  for (const Axis& axis : axes) {
    if (axis.name == name) break;
    stride *= axis.size;
  }
  return stride;
}

std::string sizes_text(std::span<const Axis> axes, std::string_view but = {}) {
  std::string text;
  for (const Axis& axis : axes) {
    if (axis.name == but) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, axis.size);
  }
  return text;
}

std::string order_text(std::span<const Axis> axes) {
  std::string text;
  for (const Axis& axis : axes) text += (text.empty() ? "" : "-") + axis.name;
  return text;
}

void check_both(std::span<const Axis> dense, std::span<const Axis> experts) {
  for (const Axis& axis : experts) {
    if (axis.name != "pp" && find(dense, axis.name) != nullptr) {
      fail(fmt::format("axis '{}' stands in both grids", axis.name));
    }
  }
  if (product(dense) != product(experts)) {
    fail(fmt::format("{} is {} ranks, but the experts' grid {} is {}", sizes_text(dense),
                     product(dense), sizes_text(experts), product(experts)));
  }
  const Axis* const pp = find(dense, "pp");
  const Axis* const expert_pp = find(experts, "pp");
  const Index stages = pp != nullptr ? pp->size : 1;
  const Index expert_stages = expert_pp != nullptr ? expert_pp->size : 1;
  if (stages != expert_stages) {
    fail(fmt::format("pp is {}, but in the experts' grid it is {}", stages, expert_stages));
  }
  if (stages > 1 && stride_of(dense, "pp") != stride_of(experts, "pp")) {
    fail(fmt::format(
        "the next stage is {} ranks on in order {}, but {} in the experts' order {}; "
        "both grids must have the same pipelines",
        stride_of(dense, "pp"), order_text(dense), stride_of(experts, "pp"), order_text(experts)));
  }
}

}  // namespace

Mesh::Mesh(std::vector<Axis> axes_fastest_first, std::vector<Axis> expert_axes_fastest_first,
           Index virtual_stages)
    : axes_(std::move(axes_fastest_first)),
      expert_axes_(std::move(expert_axes_fastest_first)),
      virtual_stages_(virtual_stages) {
  check_grid(axes_);
  check_grid(expert_axes_);
  if (!expert_axes_.empty()) check_both(axes_, expert_axes_);
  if (virtual_stages_ < 1 || virtual_stages_ > most_stages) {
    fail(fmt::format("vpp is {}, but a whole number from 1 to {} is expected", virtual_stages_,
                     most_stages));
  }
  if (virtual_stages_ > 1 && size("pp") == 1) {
    fail(fmt::format("vpp is {}, but pp is 1; virtual stages are for pipelines of 2 and more",
                     virtual_stages_));
  }
}

Index Mesh::num_ranks() const noexcept { return product(axes_); }

Index Mesh::size(std::string_view axis) const noexcept {
  if (const Axis* const own = find(axes_, axis)) return own->size;
  if (const Axis* const expert = find(expert_axes_, axis)) return expert->size;
  if (!expert_axes_.empty()) return 1;
  if (axis == "etp") return size("tp");
  if (axis == "edp") return size("cp") * size("dp");
  return 1;
}

Index Mesh::coordinate(Rank rank, std::string_view axis) const noexcept {
  if (find(axes_, axis) != nullptr) return coordinate_in(axes_, rank, axis);
  if (!expert_axes_.empty()) return coordinate_in(expert_axes_, rank, axis);
  if (axis == "etp") return coordinate(rank, "tp");
  if (axis == "edp") return coordinate(rank, "cp") + size("cp") * coordinate(rank, "dp");
  return 0;
}

Rank Mesh::first_along(std::string_view axis, Rank rank) const noexcept {
  const bool dense = find(axes_, axis) != nullptr;
  if (dense || !expert_axes_.empty()) {
    const std::span<const Axis> grid = dense ? axes_ : expert_axes_;
    return rank - coordinate_in(grid, rank, axis) * stride_of(grid, axis);
  }
  if (axis == "etp") return first_along("tp", rank);
  if (axis == "edp") return first_along("cp", first_along("dp", rank));
  return rank;
}

std::string describe(const Mesh& mesh) {
  const Index ranks = mesh.num_ranks();
  if (mesh.axes().empty()) return "1 rank";
  std::string sizes = sizes_text(mesh.axes());
  std::string order = order_text(mesh.axes());
  if (mesh.virtual_stages() > 1) sizes += fmt::format(",vpp={}", mesh.virtual_stages());
  if (!mesh.expert_axes().empty()) {
    sizes += "; " + sizes_text(mesh.expert_axes(), "pp");
    order += "; " + order_text(mesh.expert_axes());
  }
  return fmt::format("{} ({} {}, order {})", sizes, ranks, ranks == 1 ? "rank" : "ranks", order);
}

}  // namespace remesh
