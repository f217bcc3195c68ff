#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "remesh/schema/catalog.hpp"
#include "remesh/schema/layout.hpp"
#include "remesh/schema/mesh.hpp"
#include "remesh/schema/placement.hpp"
#include "remesh/schema/tensor.hpp"

namespace remesh::test {

/// Draws extents, meshes, placements and catalogs for property tests. The seed is printed by
/// SCOPED_TRACE, so a failure repeats.
///
/// What it draws is legal: the distinct boxes of each tensor are disjoint and cover it, and no
/// border cuts a byte.
class Arbitrary {
 public:
  explicit Arbitrary(std::uint64_t seed) : engine_(seed) {}

  Index between(Index low, Index high) {
    return std::uniform_int_distribution<Index>(low, high)(engine_);
  }

  bool chance(int percent) { return between(1, 100) <= percent; }

  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(between(0, std::ssize(from) - 1))];
  }

  template <typename T>
  void shuffle(std::vector<T>& items) {
    std::ranges::shuffle(items, engine_);
  }

  std::vector<std::byte> bytes(std::int64_t count) {
    std::vector<std::byte> drawn(static_cast<std::size_t>(count));
    std::ranges::generate(drawn, [this] { return static_cast<std::byte>(engine_() & 0xff); });
    return drawn;
  }

  /// 0 to 3 dims of 0 to 12; few are empty.
  Box extent() {
    Box drawn = Box::of_ndim(static_cast<std::size_t>(between(0, 3)));
    for (int dim = 0; dim < drawn.ndim(); ++dim) {
      drawn[dim] = {0, chance(4) ? 0 : between(1, 12)};
    }
    return drawn;
  }

  DType dtype() {
    const auto all = all_dtypes();
    return all[static_cast<std::size_t>(between(0, std::ssize(all) - 1))];
  }

  /// Narrow elements come in rows of whole bytes.
  TensorDesc tensor(std::string name) {
    TensorDesc drawn{std::move(name), dtype(), extent()};
    if (bits(drawn.dtype) % 8 == 0) return drawn;
    if (drawn.extent.ndim() == 0) drawn.extent = Box{{0, 4}};
    drawn.extent[drawn.extent.ndim() - 1] = {0, 4 * between(0, 3)};
    return drawn;
  }

  /// 1 to `most` tensors with different names.
  std::vector<TensorDesc> tensors(Index most = 6) {
    std::vector<TensorDesc> drawn;
    const Index count = between(1, most);
    for (Index k = 0; k < count; ++k) {
      drawn.push_back(tensor("model.layers." + std::to_string(k) + ".weight"));
    }
    return drawn;
  }

  /// tp, cp, dp and pp of 1 to 4 in any order, of at most 48 ranks; some with a grid for experts,
  /// some with virtual stages.
  Mesh mesh() {
    std::vector<Axis> axes{{"tp", 1}, {"cp", 1}, {"dp", 1}, {"pp", 1}};
    shuffle(axes);
    Index ranks = 1;
    for (Axis& axis : axes) {
      axis.size = between(1, std::min(Index{4}, 48 / ranks));
      ranks *= axis.size;
    }
    shuffle(axes);
    std::vector<Axis> grid;
    if (chance(50)) grid = expert_grid(axes);
    const Index pp = std::ranges::find(axes, "pp", &Axis::name)->size;
    return Mesh(axes, grid, pp > 1 && chance(30) ? between(2, 3) : 1);
  }

  /// 1 to 3 layers on each stage.
  Stages stages(const Mesh& mesh) {
    Stages drawn;
    for (Index stage = 0; stage < mesh.size("pp") * mesh.virtual_stages(); ++stage) {
      drawn.layers.push_back(between(1, 3));
    }
    return drawn;
  }

  static constexpr Index experts = 6;  ///< of each layer

  /// Any placement that is legal for this tensor on this mesh: replicated, split by each rule, in
  /// parts, in blocks or as the scale of blocks, with groups shared, cut or neither, over one axis
  /// or two, nested, pinned in each way, on lines.
  Placement placement(const TensorDesc& desc, const Mesh& mesh) {
    std::vector<std::string> free_axes{"tp", "cp", "dp", "pp"};
    if (chance(35)) free_axes = {"etp", "ep", "edp", "pp"};
    shuffle(free_axes);
    Placement drawn;
    if (chance(40)) drawn.pins.push_back(pin(take(free_axes), mesh));

    const bool wide = bits(desc.dtype) % 8 == 0;
    const int last_dim = desc.extent.ndim() - (wide ? 1 : 2);
    std::vector<int> split_before;
    for (Index more = last_dim < 0 ? 0 : between(0, 3); more > 0 && !free_axes.empty(); --more) {
      Split next;
      next.dim = static_cast<int>(between(0, last_dim));
      next.over.push_back(take(free_axes));
      if (!free_axes.empty() && chance(30)) next.over.push_back(take(free_axes));
      const bool nested = std::ranges::count(split_before, next.dim) > 0;
      draw_rule(next, desc.extent[next.dim].size(), joint_size(next, mesh), nested);
      split_before.push_back(next.dim);
      drawn.splits.push_back(std::move(next));
    }
    if (wide && !free_axes.empty() && chance(40)) {
      drawn.flat = flat(free_axes);
    } else if (wide && chance(30)) {
      drawn.scaled = scales(desc.extent, drawn.splits);
    }
    return drawn;
  }

  Layout layout(const std::vector<TensorDesc>& tensors) {
    Mesh mesh = this->mesh();
    Stages stages = this->stages(mesh);
    std::vector<Placement> placements;
    std::vector<Placed> placed;
    for (const TensorDesc& desc : tensors) {
      const auto layer = static_cast<std::int32_t>(between(0, stages.num_layers() - 1));
      const auto expert = static_cast<std::int32_t>(between(0, experts - 1));
      placed.push_back({static_cast<std::uint32_t>(placements.size()), layer, expert});
      Placement next = placement(desc, mesh);
      // Several tensors on one line, where that is possible.
      const auto free = [&](const Placement& other) {
        return other.flat && fits(*other.flat, next);
      };
      const auto earlier = std::ranges::find_if(placements, free);
      if (earlier != placements.end() && chance(70) && bits(desc.dtype) % 8 == 0) {
        next.flat = earlier->flat;
      }
      placements.push_back(std::move(next));
    }
    return {std::move(mesh), std::move(placements), std::move(placed), std::move(stages)};
  }

  /// Several tensors on a mesh with several stages; no digests, no side files.
  Catalog catalog() {
    Catalog drawn;
    drawn.format = "remesh";
    drawn.tensors = tensors();
    drawn.layout = layout(drawn.tensors);
    return drawn;
  }

  /// Any legal box of a tensor, also one without elements; rows of narrow elements stay whole.
  Box part(const TensorDesc& desc) {
    Box drawn = desc.extent;
    const int dims = desc.extent.ndim() - (bits(desc.dtype) % 8 == 0 ? 0 : 1);
    for (int dim = 0; dim < dims; ++dim) {
      const Range all = desc.extent[dim];
      const Index begin = between(all.begin, all.end);
      drawn[dim] = {begin, between(begin, all.end)};
      if (drawn[dim].size() == 0 && !chance(5)) drawn[dim] = all;
    }
    return drawn;
  }

  /// A box as disjoint boxes, in any order, each of whose elements lie together in it, as a Writer
  /// wants them.
  std::vector<Box> panels(const Box& box) {
    std::vector<Box> cut;
    cut_panels(box, 0, cut);
    shuffle(cut);
    return cut;
  }

 private:
  static std::string take(std::vector<std::string>& axes) {
    std::string axis = axes.back();
    axes.pop_back();
    return axis;
  }

  static Index joint_size(const Split& split, const Mesh& mesh) {
    Index count = 1;
    for (const std::string& axis : split.over) count *= mesh.size(axis);
    return count;
  }

  // The same ranks, and the same pipelines: what is faster than pp, and what is slower, dealt anew.
  std::vector<Axis> expert_grid(const std::vector<Axis>& axes) {
    Index faster = 1;
    Index slower = 1;
    bool behind = false;
    for (const Axis& axis : axes) {
      if (axis.name != "pp") (behind ? slower : faster) *= axis.size;
      behind = behind || axis.name == "pp";
    }
    std::vector<std::string> names{"etp", "ep", "edp"};
    shuffle(names);
    const Index before = between(faster > 1 ? 1 : 0, slower > 1 ? 2 : 3);
    std::vector<Axis> grid;
    const auto deal = [&](Index first, Index last, Index left) {
      for (Index k = first; k < last; ++k) {
        Index size = left;
        if (k + 1 < last) {
          do {
            size = between(1, left);
          } while (left % size != 0);
        }
        grid.push_back({names[static_cast<std::size_t>(k)], size});
        left /= size;
      }
    };
    deal(0, before, faster);
    grid.push_back({"pp", std::ranges::find(axes, "pp", &Axis::name)->size});
    deal(before, 3, slower);
    return grid;
  }

  Flat flat(std::vector<std::string>& free_axes) {
    Flat drawn;
    drawn.over.push_back(take(free_axes));
    if (!free_axes.empty() && chance(40)) drawn.over.push_back(take(free_axes));
    static constexpr FlatUnit units[] = {FlatUnit::all, FlatUnit::layer, FlatUnit::tensor};
    drawn.unit = units[between(0, 2)];
    drawn.name = chance(50) ? "" : "master";
    drawn.reversed = chance(30);
    drawn.align = chance(70) ? 1 : between(2, 8);
    drawn.bucket = chance(60) ? 0 : between(1, 60);
    drawn.pad = chance(60) ? 1 : between(2, 6);
    drawn.pad_each = chance(60) ? 1 : between(2, 4);
    return drawn;
  }

  // Whether a placement leaves the axes of a line to it, and is of the same grid.
  static bool fits(const Flat& flat, const Placement& placement) {
    if (placement.flat || !placement.scaled.empty()) return false;
    const auto grid_of = [](const std::string& axis) {
      return axis == "pp" ? 0 : axis[0] == 'e' ? 2 : 1;
    };
    std::vector<std::string> used;
    for (const Split& split : placement.splits) {
      used.insert(used.end(), split.over.begin(), split.over.end());
    }
    for (const Pin& pin : placement.pins) used.push_back(pin.axis);
    for (const std::string& axis : flat.over) {
      for (const std::string& other : used) {
        if (axis == other || grid_of(axis) + grid_of(other) == 3) return false;
      }
    }
    return true;
  }

  Pin pin(const std::string& axis, const Mesh& mesh) {
    if (axis == "pp") {
      static constexpr PinTo by_stage[] = {PinTo::layer, PinTo::first, PinTo::last, PinTo::ends};
      if (const Index kind = between(0, 4); kind < 4) return {axis, by_stage[kind], {}, 0};
    }
    if (axis == "ep" && chance(70)) return {axis, PinTo::expert, {}, experts};
    Pin drawn{axis, PinTo::coordinates, {}, 0};
    for (Index at = 0; at < mesh.size(axis); ++at) {
      if (chance(50)) drawn.coordinates.push_back(at);
    }
    if (drawn.coordinates.empty()) drawn.coordinates.push_back(between(0, mesh.size(axis) - 1));
    return drawn;
  }

  // A nested split does not know how much there is to divide, so that only rules that always fit
  // are drawn for it.
  void draw_rule(Split& split, Index total, Index count, bool nested) {
    split.rule = chance(50) ? SplitRule::balanced : SplitRule::chunk;
    if (nested) return;
    if (chance(20)) {
      split.rule = SplitRule::sizes;
      split.sizes = sizes(total, count);
    } else if (chance(40)) {
      draw_groups(split, total, count);
    } else if (chance(40) && total > 1) {
      split.parts = parts(total, count);
    } else if (chance(40)) {
      split.block = between(2, 4);
    }
  }

  // Dims in blocks that have scales, or of scales: whole groups, parts and sizes would be cut.
  std::vector<Scaled> scales(const Box& extent, const std::vector<Split>& splits) {
    std::vector<Scaled> drawn;
    for (int dim = 0; dim < extent.ndim(); ++dim) {
      const bool plain = std::ranges::none_of(splits, [&](const Split& split) {
        return split.dim == dim &&
               (split.groups > 0 || !split.parts.empty() || !split.sizes.empty());
      });
      if (!plain || !chance(30)) continue;
      Scaled scaled{dim, between(2, 4), 0};
      const Index size = extent[dim].size();
      if (chance(50) && size > 0) scaled.of = (size - 1) * scaled.block + between(1, scaled.block);
      drawn.push_back(scaled);
    }
    return drawn;
  }

  std::vector<Part> parts(Index total, Index count) {
    std::vector<Part> drawn;
    for (const Index size : sizes(total, between(2, 3))) {
      Split groups;
      if (chance(50)) draw_groups(groups, size, count);
      drawn.push_back({size, groups.groups, groups.beyond});
    }
    return drawn;
  }

  std::vector<Index> sizes(Index total, Index count) {
    std::vector<Index> borders{0, total};
    for (Index k = 1; k < count; ++k) borders.push_back(between(0, total));
    std::ranges::sort(borders);
    std::vector<Index> drawn;
    for (std::size_t k = 1; k < borders.size(); ++k) drawn.push_back(borders[k] - borders[k - 1]);
    return drawn;
  }

  void draw_groups(Split& split, Index total, Index count) {
    std::vector<Index> whole;
    std::vector<Index> shared;
    for (Index groups = 1; groups <= total; ++groups) {
      if (total % groups != 0) continue;
      if (groups % count == 0) whole.push_back(groups);
      if (count % groups == 0) shared.push_back(groups);
    }
    split.rule = SplitRule::balanced;
    split.unit = "heads";
    if (total > 0 && chance(20)) {
      do {
        split.groups = between(1, total);
      } while (total % split.groups != 0);
      split.beyond = Beyond::divide;
    } else if (!shared.empty() && (whole.empty() || chance(50))) {
      split.groups = pick(shared);
      split.beyond = Beyond::share;
    } else if (!whole.empty()) {
      split.groups = pick(whole);
      split.beyond = chance(50) ? Beyond::share : Beyond::refuse;
    }
  }

  void cut_panels(const Box& box, int dim, std::vector<Box>& cut) {
    if (dim == box.ndim() || box.empty() || chance(20)) {
      cut.push_back(box);
      return;
    }
    for (Index at = box[dim].begin; at < box[dim].end;) {
      const Index end = between(at + 1, box[dim].end);
      Box slab = box;
      slab[dim] = {at, end};
      if (slab[dim].size() == 1) {
        cut_panels(slab, dim + 1, cut);
      } else {
        cut.push_back(slab);
      }
      at = end;
    }
  }

  std::mt19937_64 engine_;
};

}  // namespace remesh::test
