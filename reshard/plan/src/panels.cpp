#include "remesh/plan/panels.hpp"

#include <algorithm>
#include <cassert>

namespace remesh {
namespace {

constexpr std::int64_t page_bytes = 4096;

// The bytes of one step along `dim`: everything behind it.
std::int64_t step_bytes(const Box& extent, int dim, std::int64_t element_bytes) {
  std::int64_t bytes = element_bytes;
  for (int behind = dim + 1; behind < extent.ndim(); ++behind) bytes *= extent[behind].size();
  return bytes;
}

// The first dim of which one step fits into a panel.
int cut_dim(const Box& extent, std::int64_t element_bytes, std::int64_t max_bytes) {
  int dim = 0;
  while (step_bytes(extent, dim, element_bytes) > max_bytes) ++dim;
  return dim;
}

// How many steps a panel takes: as many as fit, in whole pages where a panel has pages at all.
Index steps_per_panel(std::int64_t step, std::int64_t max_bytes) {
  const Index most = max_bytes / step;
  if (step < page_bytes && page_bytes % step == 0) {
    const Index page = page_bytes / step;
    if (most > page) return most / page * page;
  }
  return most;
}

// Moves `box` to the next index of its dims before `dim`. False when all were seen.
bool next_outer(Box& box, const Box& extent, int dim) {
  for (int outer = dim - 1; outer >= 0; --outer) {
    const Index next = box[outer].begin + 1;
    if (next < extent[outer].end) {
      box[outer] = {next, next + 1};
      return true;
    }
    box[outer] = {extent[outer].begin, extent[outer].begin + 1};
  }
  return false;
}

}  // namespace

std::vector<Box> panels(const Box& extent, std::int64_t element_bytes, std::int64_t max_bytes) {
  assert(max_bytes >= element_bytes);
  if (extent.empty()) return {};
  if (extent.ndim() == 0) return {extent};

  const int dim = cut_dim(extent, element_bytes, max_bytes);
  const Index steps = steps_per_panel(step_bytes(extent, dim, element_bytes), max_bytes);
  std::vector<Box> all;
  Box panel = extent;
  for (int outer = 0; outer < dim; ++outer) panel[outer].end = panel[outer].begin + 1;
  do {
    for (Index begin = extent[dim].begin; begin < extent[dim].end; begin += steps) {
      panel[dim] = {begin, std::min(begin + steps, extent[dim].end)};
      all.push_back(panel);
    }
  } while (next_outer(panel, extent, dim));
  return all;
}

}  // namespace remesh
