#include "remesh/plan/plan.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "remesh/core/error.hpp"
#include "remesh/schema/coverage.hpp"

namespace remesh {
namespace {

// Sources sorted along the dim that tells most of them apart, so that a target looks only at those
// near it.
class Sorted {
 public:
  explicit Sorted(std::span<const Box> boxes) : boxes_(boxes), order_(boxes.size()) {
    std::iota(order_.begin(), order_.end(), std::uint32_t{0});
    const int ndim = boxes.empty() ? 0 : boxes.front().ndim();
    std::size_t most = 0;
    for (int dim = 0; dim < ndim; ++dim) {
      const std::size_t distinct = count_begins(dim);
      if (distinct > most) {
        most = distinct;
        dim_ = dim;
      }
    }
    if (ndim > 0) sort_along(dim_);
  }

  // Those that may overlap `target`, ascending by number.
  std::vector<std::uint32_t> near(const Box& target) const {
    if (target.ndim() == 0) return order_;
    const Range range = target[dim_];
    const auto begin_of = [this](std::uint32_t number) { return boxes_[number][dim_].begin; };
    const auto begin = std::ranges::upper_bound(order_, range.begin - longest_, {}, begin_of);
    const auto end = std::ranges::lower_bound(order_, range.end, {}, begin_of);
    std::vector<std::uint32_t> found(begin, std::max(begin, end));
    std::ranges::sort(found);
    return found;
  }

 private:
  std::size_t count_begins(int dim) const {
    std::vector<Index> begins;
    begins.reserve(boxes_.size());
    for (const Box& box : boxes_) begins.push_back(box[dim].begin);
    std::ranges::sort(begins);
    return static_cast<std::size_t>(std::unique(begins.begin(), begins.end()) - begins.begin());
  }

  void sort_along(int dim) {
    for (const Box& box : boxes_) longest_ = std::max(longest_, box[dim].size());
    std::ranges::sort(order_, {}, [&](std::uint32_t number) { return boxes_[number][dim].begin; });
  }

  std::span<const Box> boxes_;
  std::vector<std::uint32_t> order_;
  int dim_ = 0;
  Index longest_ = 0;
};

std::vector<Box> boxes_of(std::span<const HeldBox> held) {
  std::vector<Box> boxes;
  boxes.reserve(held.size());
  for (const HeldBox& one : held) boxes.push_back(one.box);
  return boxes;
}

// Whom a target asks: itself if it can, since that is free; otherwise targets take turns.
Rank source_for(Rank target, std::size_t turn, const std::vector<Rank>& holders) {
  if (std::ranges::binary_search(holders, target)) return target;
  return holders[turn % holders.size()];
}

[[noreturn]] void fail_incomplete(const TensorDesc& tensor, const HeldBox& want,
                                  std::span<const HeldBox> held) {
  std::vector<Box> missing{want.box};
  for (const HeldBox& source : held) missing = without(missing, source.box);
  throw Error(
      Errc::incomplete,
      fmt::format("cannot reshard {}: target rank {} needs {}, but no source rank holds {}; "
                  "is a shard of the source checkpoint missing?",
                  to_string(tensor), want.holders.front(), to_string(want.box),
                  missing.empty() ? "all of it" : to_string(missing.front())),
      "RM301");
}

}  // namespace

std::vector<Overlap> overlaps(std::span<const Box> source, std::span<const Box> target) {
  const Sorted sorted(source);
  std::vector<Overlap> all;
  for (std::uint32_t to = 0; to < target.size(); ++to) {
    for (const std::uint32_t from : sorted.near(target[to])) {
      if (const auto box = intersect(source[from], target[to])) all.push_back({from, to, *box});
    }
  }
  return all;
}

std::vector<Move> plan_tensor(const TensorDesc& tensor, std::span<const HeldBox> held,
                              std::span<const HeldBox> wanted) {
  const std::vector<Overlap> shared = overlaps(boxes_of(held), boxes_of(wanted));
  std::vector<Move> moves;
  std::size_t turn = 0;
  auto first = shared.begin();
  for (std::uint32_t to = 0; to < wanted.size(); ++to) {
    const HeldBox& want = wanted[to];
    const auto last =
        std::find_if(first, shared.end(), [to](const Overlap& one) { return one.target != to; });
    Index found = 0;
    for (auto part = first; part != last; ++part) found += part->box.num_elements();
    if (found != want.box.num_elements()) fail_incomplete(tensor, want, held);
    for (const Rank target : want.holders) {
      for (auto part = first; part != last; ++part) {
        moves.push_back({source_for(target, turn, held[part->source].holders), target, part->box});
      }
      ++turn;
    }
    first = last;
  }
  return moves;
}

}  // namespace remesh
