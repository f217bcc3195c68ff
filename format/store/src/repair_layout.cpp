#include "repair_layout.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "remesh/core/error.hpp"
#include "remesh/schema/pieces.hpp"

namespace remesh::native {
namespace {

// What is dealt over more axes than this is not searched for.
constexpr std::size_t most_axes = 6;

// Of more ranks only a mesh of one axis is looked at, for meshes are many.
constexpr Index most_ranks_to_factor = 4096;

constexpr int uncut = -1;

// The ranges of one dim that the shares of some axes have, by the index that the axes make.
class Shares {
 public:
  explicit Shares(Index count) : ranges_(static_cast<std::size_t>(count)) {}

  // Whether that share has no other range.
  bool add(Index at, Range range) {
    std::optional<Range>& known = ranges_[static_cast<std::size_t>(at)];
    if (!known) known = range;
    return *known == range;
  }

  // The sizes of all shares, those that nobody was seen to have empty; nothing if they do not
  // follow each other.
  std::optional<std::vector<Index>> sizes(Index total) const {
    std::vector<Index> sizes;
    sizes.reserve(ranges_.size());
    Index end = 0;
    for (const std::optional<Range>& range : ranges_) {
      if (range && range->begin != end) return std::nullopt;
      sizes.push_back(range ? range->size() : 0);
      end += sizes.back();
    }
    if (end != total) return std::nullopt;
    return sizes;
  }

 private:
  std::vector<std::optional<Range>> ranges_;
};

std::vector<Index> sizes_by(const Split& split, Index total, Index count) {
  std::vector<Index> sizes;
  sizes.reserve(static_cast<std::size_t>(count));
  for (Index at = 0; at < count; ++at) {
    sizes.push_back(split_range(split, {0, total}, count, at).size());
  }
  return sizes;
}

// The simplest rule that makes these sizes.
Split split_of(int dim, std::vector<std::string> over, Index total, std::vector<Index> sizes) {
  Split split{.dim = dim, .over = std::move(over)};
  const auto count = std::ssize(sizes);
  for (const SplitRule rule : {SplitRule::balanced, SplitRule::chunk}) {
    split.rule = rule;
    if (sizes_by(split, total, count) == sizes) return split;
  }
  split.rule = SplitRule::sizes;
  split.sizes = std::move(sizes);
  return split;
}

struct Choice {
  Placement placement;
  std::int64_t unstored = 0;
  std::size_t rules = 0;  // how much the placement says

  auto order() const noexcept { return std::tuple(unstored, rules); }
};

std::size_t rules_of(const Placement& placement) {
  std::size_t rules = placement.pins.size();
  for (const Split& split : placement.splits) rules += split.rule == SplitRule::sizes ? 3 : 1;
  return rules;
}

// Finds how one tensor may lie over a mesh: each axis cuts one of the dims that are cut, or none.
class TensorSearch {
 public:
  TensorSearch(const Mesh& mesh, const TensorDesc& desc, std::span<const StoredBox> stored,
               Replicas replicas)
      : mesh_(mesh), desc_(desc), stored_(stored), replicas_(replicas) {
    for (const Axis& axis : mesh.axes()) {
      if (axis.size > 1) axes_.push_back(axis.name);
    }
    if (!desc.extent.empty()) find_cut_dims();
  }

  std::optional<Choice> run() {
    if (axes_.size() > most_axes || stored_.empty()) return std::nullopt;
    std::vector<int> dim_of(axes_.size(), uncut);
    choose(dim_of, 0);
    return std::move(best_);
  }

 private:
  void find_cut_dims() {
    for (int dim = 0; dim < desc_.extent.ndim(); ++dim) {
      const auto is_cut = [&](const StoredBox& each) { return each.box[dim] != desc_.extent[dim]; };
      if (std::ranges::any_of(stored_, is_cut)) cut_dims_.push_back(dim);
    }
  }

  void choose(std::vector<int>& dim_of, std::size_t axis) {
    if (axis == axes_.size()) return consider(dim_of);
    dim_of[axis] = uncut;
    choose(dim_of, axis + 1);
    for (const int dim : cut_dims_) {
      dim_of[axis] = dim;
      choose(dim_of, axis + 1);
    }
  }

  void consider(std::span<const int> dim_of) {
    Placement placement;
    for (const int dim : cut_dims_) {
      auto split = split_over(dim, axes_with(dim_of, dim));
      if (!split) return;
      placement.splits.push_back(std::move(*split));
    }
    if (replicas_ == Replicas::none) pin(placement, axes_with(dim_of, uncut));
    Choice choice{std::move(placement)};
    choice.rules = rules_of(choice.placement);
    const auto unstored = unstored_by(choice.placement);
    if (!unstored) return;
    choice.unstored = *unstored;
    if (!best_ || choice.order() < best_->order()) best_ = std::move(choice);
  }

  std::vector<std::string> axes_with(std::span<const int> dim_of, int dim) const {
    std::vector<std::string> names;
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
      if (dim_of[axis] == dim) names.push_back(axes_[axis]);
    }
    return names;
  }

  std::optional<Split> split_over(int dim, std::vector<std::string> over) const {
    if (over.empty()) return std::nullopt;
    Index count = 1;
    for (const std::string& axis : over) count *= mesh_.size(axis);
    if (count > static_cast<Index>(most_listed)) return std::nullopt;
    Shares shares(count);
    for (const StoredBox& each : stored_) {
      if (!shares.add(index_of(each.rank, over), each.box[dim])) return std::nullopt;
    }
    const Index total = desc_.extent[dim].end;
    auto sizes = shares.sizes(total);
    if (!sizes) return std::nullopt;
    return split_of(dim, std::move(over), total, std::move(*sizes));
  }

  Index index_of(Rank rank, std::span<const std::string> over) const {
    Index index = 0;
    Index stride = 1;
    for (const std::string& axis : over) {
      index += stride * mesh_.coordinate(rank, axis);
      stride *= mesh_.size(axis);
    }
    return index;
  }

  // Nobody who does not store it shall be said to hold it, as far as pins can say so.
  void pin(Placement& placement, std::span<const std::string> axes) const {
    for (const std::string& axis : axes) {
      std::vector<Index> seen;
      for (const StoredBox& each : stored_) seen.push_back(mesh_.coordinate(each.rank, axis));
      std::ranges::sort(seen);
      seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
      if (std::ssize(seen) == mesh_.size(axis)) continue;
      placement.pins.push_back(
          {.axis = axis, .to = PinTo::coordinates, .coordinates = std::move(seen)});
    }
  }

  // How many hold what they do not store; nothing unless each rank that stores a box holds it, and
  // each box that is held is stored. The layout itself is asked, not what was found out about it.
  std::optional<std::int64_t> unstored_by(const Placement& placement) const {
    const std::span<const TensorDesc> tensors(&desc_, 1);
    try {
      const Layout layout(mesh_, {placement}, {Placed{}}, {});
      std::int64_t held = 0;
      std::size_t found = 0;
      for (const HeldBox& each : Pieces(layout, tensors).of(0)) {
        held += std::ssize(each.holders);
        std::size_t storing = 0;
        for (const Rank rank : each.holders) {
          if (std::ranges::binary_search(stored_, StoredBox{rank, each.box})) ++storing;
        }
        if (storing == 0) return std::nullopt;
        found += storing;
      }
      if (found != stored_.size()) return std::nullopt;
      return held - std::ssize(stored_);
    } catch (const Error&) {
      return std::nullopt;  // an impossible one
    }
  }

  const Mesh& mesh_;
  const TensorDesc& desc_;
  const std::span<const StoredBox> stored_;
  const Replicas replicas_;
  std::vector<std::string> axes_;
  std::vector<int> cut_dims_;
  std::optional<Choice> best_;
};

void add_meshes(Index ranks, std::vector<Index>& sizes, std::vector<Mesh>& meshes) {
  static const std::vector<std::string> names{"tp", "dp", "pp"};
  if (ranks == 1 && !sizes.empty()) {
    std::vector<Axis> axes;
    for (std::size_t at = 0; at < sizes.size(); ++at) axes.push_back({names[at], sizes[at]});
    meshes.emplace_back(std::move(axes));
    return;
  }
  if (sizes.size() == names.size()) return;
  for (Index size = 2; size <= ranks; ++size) {
    if (ranks % size != 0) continue;
    sizes.push_back(size);
    add_meshes(ranks / size, sizes, meshes);
    sizes.pop_back();
  }
}

}  // namespace

std::vector<Mesh> meshes_of(Index ranks) {
  if (ranks == 1) return {Mesh()};
  if (ranks > most_ranks_to_factor) return {Mesh({{"tp", ranks}})};
  std::vector<Mesh> meshes;
  std::vector<Index> sizes;
  add_meshes(ranks, sizes, meshes);
  std::ranges::stable_sort(meshes, {}, [](const Mesh& mesh) { return mesh.axes().size(); });
  return meshes;
}

Layout sharing_placements(const Layout& layout) {
  std::vector<Placement> distinct;
  std::vector<Placed> placed(layout.placed().begin(), layout.placed().end());
  std::map<std::string, std::vector<std::uint32_t>> by_text;  // what is equal reads the same
  for (Placed& each : placed) {
    const Placement& placement = layout.placements()[each.placement];
    std::vector<std::uint32_t>& alike = by_text[to_string(placement)];
    const auto known = std::ranges::find(
        alike, placement, [&](std::uint32_t at) -> const Placement& { return distinct[at]; });
    if (known == alike.end()) {
      each.placement = static_cast<std::uint32_t>(distinct.size());
      alike.push_back(each.placement);
      distinct.push_back(placement);
    } else {
      each.placement = *known;
    }
  }
  return {layout.mesh(), std::move(distinct), std::move(placed), layout.stages()};
}

std::optional<DerivedLayout> derive_layout(const Mesh& mesh, std::span<const TensorDesc> tensors,
                                           std::span<const std::vector<StoredBox>> stored,
                                           Replicas replicas) {
  std::map<std::pair<Box, std::vector<StoredBox>>, Choice> known;  // most tensors lie as others do
  std::vector<Placement> placements;
  std::vector<Placed> placed;
  placements.reserve(tensors.size());
  placed.reserve(tensors.size());
  std::int64_t unstored = 0;
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    auto key = std::pair(tensors[tensor].extent, stored[tensor]);
    auto at = known.find(key);
    if (at == known.end()) {
      auto choice = TensorSearch(mesh, tensors[tensor], stored[tensor], replicas).run();
      if (!choice) return std::nullopt;
      at = known.emplace(std::move(key), std::move(*choice)).first;
    }
    placed.push_back({static_cast<std::uint32_t>(placements.size())});
    placements.push_back(at->second.placement);
    unstored += at->second.unstored;
  }
  return DerivedLayout{Layout(mesh, std::move(placements), std::move(placed), {}), unstored};
}

std::optional<DerivedLayout> derive_layout(Index ranks, std::span<const TensorDesc> tensors,
                                           std::span<const std::vector<StoredBox>> stored) {
  std::optional<DerivedLayout> best;
  for (const Mesh& mesh : meshes_of(ranks)) {
    auto derived = derive_layout(mesh, tensors, stored, Replicas::none);
    if (!derived || (best && best->unstored <= derived->unstored)) continue;
    best = std::move(derived);
    if (best->unstored == 0) break;
  }
  return best;
}

}  // namespace remesh::native
