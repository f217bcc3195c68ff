#include "remesh/schema/coverage.hpp"

#include <algorithm>
#include <iterator>

namespace remesh {
namespace {

using Few = std::vector<const Box*>;

// Looks at slabs between the borders of one dim, in each at those between the borders of the next.
class Sweep {
 public:
  explicit Sweep(const Box& extent) : ndim_(extent.ndim()), slab_(extent) {}

  Coverage run(const Few& pieces) {
    look(0, pieces);
    return std::move(coverage_);
  }

 private:
  void look(int dim, const Few& pieces) {
    if (dim == ndim_ || pieces.empty()) return judge(pieces);
    // A piece that is all there is needs no look at its dims.
    if (pieces.size() == 1 && spans(*pieces.front(), dim)) return;
    const Range whole = slab_[dim];
    Few by_begin = pieces;
    std::ranges::sort(by_begin, {}, [dim](const Box* box) { return (*box)[dim].begin; });
    Few active;
    auto next = by_begin.begin();
    for (Index at = whole.begin; at < whole.end;) {
      std::erase_if(active, [&](const Box* box) { return (*box)[dim].end <= at; });
      for (; next != by_begin.end() && (**next)[dim].begin <= at; ++next) active.push_back(*next);
      Index end = next == by_begin.end() ? whole.end : (**next)[dim].begin;
      for (const Box* box : active) end = std::min(end, (*box)[dim].end);
      slab_[dim] = {at, end};
      look(dim + 1, active);
      at = end;
    }
    slab_[dim] = whole;
  }

  bool spans(const Box& piece, int dim) const {
    for (; dim < ndim_; ++dim) {
      if (piece[dim] != slab_[dim]) return false;
    }
    return true;
  }

  void judge(const Few& pieces) {
    if (pieces.empty()) add(coverage_.missing);
    if (pieces.size() > 1) add(coverage_.doubled);
  }

  // Slabs that follow each other and differ in one dim alone are one box.
  void add(std::vector<Box>& boxes) const {
    while (!boxes.empty()) {
      int different = -1;
      for (int dim = 0; dim < ndim_; ++dim) {
        if (boxes.back()[dim] == slab_[dim]) continue;
        if (different >= 0) return boxes.push_back(slab_);
        different = dim;
      }
      if (different < 0 || boxes.back()[different].end != slab_[different].begin) break;
      boxes.back()[different].end = slab_[different].end;
      return;
    }
    boxes.push_back(slab_);
  }

  const int ndim_;
  Box slab_;
  Coverage coverage_;
};

}  // namespace

std::vector<Box> without(std::span<const Box> boxes, const Box& hole) {
  std::vector<Box> left;
  for (const Box& box : boxes) {
    if (const auto shared = intersect(box, hole)) {
      std::ranges::copy(subtract(box, *shared), std::back_inserter(left));
    } else {
      left.push_back(box);
    }
  }
  return left;
}

Coverage cover(const Box& extent, std::span<const Box> pieces) {
  if (extent.empty()) return {};
  Few with_elements;
  for (const Box& piece : pieces) {
    if (!piece.empty()) with_elements.push_back(&piece);
  }
  return Sweep(extent).run(with_elements);
}

}  // namespace remesh
