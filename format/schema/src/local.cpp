#include "local.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "ranges.hpp"
#include "remesh/core/error.hpp"

namespace remesh::detail {
namespace {

bool pinned_here(const Pin& pin, const Layout& layout, const Placed& placed, Rank rank) {
  const Mesh& mesh = layout.mesh();
  const Index at = mesh.coordinate(rank, pin.axis);
  const Index count = mesh.size(pin.axis);
  switch (pin.to) {
    case PinTo::coordinates:
      return std::ranges::binary_search(pin.coordinates, at);
    case PinTo::layer:
      return layout.stages().stage_of(placed.layer) % count == at;
    case PinTo::first:
      return at == 0;
    case PinTo::last:
      return at == count - 1;
    case PinTo::ends:
      return at == 0 || at == count - 1;
    case PinTo::expert: {
      const Range share = split_range(Split{}, {0, pin.experts}, count, at);
      return share.begin <= placed.expert && placed.expert < share.end;
    }
  }
  return false;
}

void check_dim(const Split& split, const TensorDesc& desc) {
  if (split.dim >= 0 && split.dim < desc.extent.ndim()) return;
  throw Error(Errc::invalid_argument,
              fmt::format("cannot place {}: its placement splits dim {}, but it has {} dims",
                          to_string(desc), split.dim, desc.extent.ndim()));
}

// As many scales as their weight has blocks.
void check_scales(const Placement& how, const TensorDesc& desc) {
  for (const Scaled& scaled : how.scaled) {
    if (scaled.dim >= desc.extent.ndim()) {
      throw Error(
          Errc::invalid_argument,
          fmt::format("cannot place {}: its placement has dim {} in blocks, but it has {} dims",
                      to_string(desc), scaled.dim, desc.extent.ndim()));
    }
    if (scaled.of == 0) continue;
    const Index size = desc.extent[scaled.dim].size();
    const Index all = blocks_in(scaled.of, scaled.block);
    if (size == all) continue;
    throw Error(
        Errc::invalid_argument,
        fmt::format("cannot place {}: its dim {} has {} elements, but one scale for each {} of "
                    "{} is {}",
                    to_string(desc), scaled.dim, size, scaled.block, scaled.of, all));
  }
}

// A box of what the rank has, in its own coordinates, as boxes of the whole tensor.
void add_global(const Local& local, const std::vector<Range>& own, std::vector<Box>& boxes) {
  std::vector<Box> made{Box::of_ndim(own.size())};
  for (std::size_t dim = 0; dim < own.size(); ++dim) {
    std::vector<Box> longer;
    std::vector<Range> part;
    take_run(local.dims[dim], own[dim], part);
    for (const Box& box : made) {
      for (const Range& range : part) {
        longer.push_back(box);
        longer.back()[static_cast<int>(dim)] = range;
      }
    }
    made = std::move(longer);
  }
  boxes.insert(boxes.end(), made.begin(), made.end());
}

// A run of elements as boxes: a part of its first row, whole rows, a part of its last row; and so
// in each row again.
class Cut {
 public:
  explicit Cut(const Local& local) : local_(local) {
    for (std::size_t dim = 0; dim < local.dims.size(); ++dim) {
      own_.push_back({0, local.size(dim)});
    }
  }

  std::vector<Box> run(Index begin, Index end) {
    if (begin < end) cut(0, begin, end);
    return std::move(boxes_);
  }

 private:
  void cut(std::size_t dim, Index begin, Index end) {
    if (dim == own_.size()) return add_global(local_, own_, boxes_);
    const Range whole = own_[dim];
    Index row = 1;
    for (std::size_t behind = dim + 1; behind < own_.size(); ++behind) row *= local_.size(behind);
    const Index first = begin / row;
    const Index last = (end - 1) / row;
    if (first == last && end - begin < row) {
      one_row(dim, first, begin - first * row, end - first * row);
    } else {
      const Index whole_begin = first + (begin % row != 0 ? 1 : 0);
      const Index whole_end = end / row;
      if (whole_begin > first) one_row(dim, first, begin % row, row);
      if (whole_begin < whole_end) {
        own_[dim] = {whole_begin, whole_end};
        add_global(local_, own_, boxes_);
      }
      if (end % row != 0) one_row(dim, last, 0, end % row);
    }
    own_[dim] = whole;
  }

  void one_row(std::size_t dim, Index index, Index begin, Index end) {
    own_[dim] = {index, index + 1};
    cut(dim + 1, begin, end);
  }

  const Local& local_;
  std::vector<Range> own_;
  std::vector<Box> boxes_;
};

}  // namespace

Index Local::size(std::size_t dim) const noexcept { return size_of(dims[dim]); }

Index Local::num_elements() const noexcept {
  Index count = 1;
  for (std::size_t dim = 0; dim < dims.size(); ++dim) count *= size(dim);
  return count;
}

Joint joint_of(const std::vector<std::string>& axes, const Mesh& mesh, Rank rank) {
  Joint joint;
  for (const std::string& axis : axes) {
    joint.at += joint.count * mesh.coordinate(rank, axis);
    joint.count *= mesh.size(axis);
  }
  return joint;
}

std::optional<Local> local_of(const Layout& layout, std::size_t tensor, const TensorDesc& desc,
                              Rank rank) {
  const Placement& how = layout.placement(tensor);
  for (const Pin& pin : how.pins) {
    if (!pinned_here(pin, layout, layout.placed()[tensor], rank)) return std::nullopt;
  }
  check_scales(how, desc);
  Local local;
  for (int dim = 0; dim < desc.extent.ndim(); ++dim) {
    local.dims.emplace_back();
    if (desc.extent[dim].size() > 0) local.dims.back().push_back(desc.extent[dim]);
  }
  for (const Split& split : how.splits) {
    check_dim(split, desc);
    const Joint joint = joint_of(split.over, layout.mesh(), rank);
    std::vector<Range>& ranges = local.dims[static_cast<std::size_t>(split.dim)];
    try {
      const Scaled* const scaled = scaled_dim(how, split.dim);
      ranges = scaled == nullptr ? split_ranges(split, ranges, joint.count, joint.at)
                                 : split_ranges(split, *scaled, ranges, joint.count, joint.at);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("cannot place {}: {}", to_string(desc), error.what()));
    }
  }
  return local;
}

std::vector<Box> boxes_of(const Local& local, Index begin, Index end) {
  return Cut(local).run(begin, end);
}

}  // namespace remesh::detail
