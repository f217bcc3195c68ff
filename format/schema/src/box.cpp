#include "remesh/schema/box.hpp"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include "remesh/core/error.hpp"

namespace remesh {
namespace {

void check_ndim(std::size_t ndim) {
  if (ndim > static_cast<std::size_t>(max_ndim)) {
    throw Error(Errc::unsupported,
                fmt::format("a tensor has at most {} dimensions, not {}", max_ndim, ndim));
  }
}

}  // namespace

Box Box::of_ndim(std::size_t ndim) {
  check_ndim(ndim);
  Box box;
  box.ndim_ = static_cast<int>(ndim);
  return box;
}

Box Box::whole(std::span<const Index> shape) {
  Box box = of_ndim(shape.size());
  for (int dim = 0; dim < box.ndim(); ++dim) box[dim] = {0, shape[static_cast<std::size_t>(dim)]};
  return box;
}

Box::Box(std::initializer_list<Range> ranges) : ndim_(static_cast<int>(ranges.size())) {
  check_ndim(ranges.size());
  std::copy(ranges.begin(), ranges.end(), ranges_.begin());
}

Index Box::num_elements() const noexcept {
  Index count = 1;
  for (int dim = 0; dim < ndim_; ++dim) count *= (*this)[dim].size();
  return count;
}

std::optional<Box> intersect(const Box& a, const Box& b) {
  assert(a.ndim() == b.ndim());
  Box shared = a;
  for (int dim = 0; dim < a.ndim(); ++dim) {
    shared[dim] = {std::max(a[dim].begin, b[dim].begin), std::min(a[dim].end, b[dim].end)};
  }
  if (shared.num_elements() == 0) return std::nullopt;
  return shared;
}

bool contains(const Box& outer, const Box& inner) {
  assert(outer.ndim() == inner.ndim());
  if (inner.empty()) return true;
  for (int dim = 0; dim < outer.ndim(); ++dim) {
    if (inner[dim].begin < outer[dim].begin || inner[dim].end > outer[dim].end) return false;
  }
  return true;
}

// Peels off, dimension by dimension, the slab before the hole and the slab after it. What is left
// narrows to the hole itself.
std::vector<Box> subtract(const Box& whole, const Box& hole) {
  assert(whole.ndim() == hole.ndim());
  std::vector<Box> rest;
  Box core = whole;
  for (int dim = 0; dim < whole.ndim(); ++dim) {
    Box before = core;
    Box after = core;
    before[dim].end = hole[dim].begin;
    after[dim].begin = hole[dim].end;
    if (before.num_elements() > 0) rest.push_back(before);
    if (after.num_elements() > 0) rest.push_back(after);
    core[dim] = hole[dim];
  }
  return rest;
}

Box element_of(const Box& box, Index number) {
  Box element = box;
  for (int dim = box.ndim() - 1; dim >= 0; --dim) {
    const Index at = box[dim].begin + number % box[dim].size();
    element[dim] = {at, at + 1};
    number /= box[dim].size();
  }
  return element;
}

std::string to_string(const Box& box) {
  if (box.ndim() == 0) return "scalar";
  std::string text;
  for (int dim = 0; dim < box.ndim(); ++dim) {
    text += fmt::format("{}[{}, {})", dim == 0 ? "" : " x ", box[dim].begin, box[dim].end);
  }
  return text;
}

}  // namespace remesh
