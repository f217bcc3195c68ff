#include "placement_check.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "manifest.hpp"
#include "remesh/core/checked.hpp"
#include "remesh/schema/coverage.hpp"
#include "remesh/schema/pieces.hpp"
#include "remesh/schema/runs.hpp"

namespace remesh::native {
namespace {

// Cutting holes out costs boxes times holes; a tensor in more boxes than this is reported whole.
constexpr std::size_t most_boxes_to_cut = 4096;
constexpr std::size_t most_holes_to_report = 16;
constexpr std::int64_t most_looks = 10'000'000;  // for what absent shards held

std::string list_of(const std::vector<Box>& boxes) {
  constexpr std::size_t most_listed = 4;
  if (boxes.empty()) return "nothing";
  std::string text;
  for (std::size_t at = 0; at < std::min(boxes.size(), most_listed); ++at) {
    text += (at == 0 ? "" : " and ") + to_string(boxes[at]);
  }
  return boxes.size() > most_listed ? text + " and more" : text;
}

class TensorCheck {
 public:
  TensorCheck(const Catalog& catalog, const ExtentMap& extents, std::span<const Rank> unread_ranks,
              const Complaints& complaints)
      : catalog_(catalog),
        pieces_(catalog.layout, catalog.tensors),
        extents_(extents),
        unread_(unread_ranks),
        complaints_(complaints) {}

  void check(std::size_t tensor) {
    const TensorDesc& desc = catalog_.tensors[tensor];
    const Extent* previous = nullptr;
    Index stored = 0;
    for (const std::uint32_t number : extents_.of(tensor)) {
      const Extent& extent = extents_.extents()[number];
      check_box(desc, extent);
      if (previous != nullptr && previous->copy == extent.copy && previous->box == extent.box) {
        complain("RM304", desc, extent.box,
                 fmt::format("ranks {} and {} both store it as copy {}", previous->rank,
                             extent.rank, extent.copy));
      }
      if (extent.copy == 0) {
        stored = checked_add(stored, extent.box.num_elements()).value_or(-1);
      }
      previous = &extent;
    }
    if (pieces_.may_be_cut(tensor)) {
      check_cover(tensor, desc);
    } else if (previous == nullptr || stored != desc.extent.num_elements()) {
      report_holes(tensor, desc, not_stored(tensor, desc));
    }
    if (unread_.empty()) check_copies(tensor, desc);
  }

 private:
  // Whether the layout has that rank store that box: what the rank holds, or, where replicas are
  // cut at each other's borders, a part of it. That is seldom so, and takes a look at all ranks.
  bool is_wanted(const Extent& extent, const std::vector<Box>& held) {
    if (std::ranges::find(held, extent.box) != held.end()) return true;
    if (extent.box.empty() || !pieces_.may_be_cut(extent.tensor)) return false;
    const auto whole =
        std::ranges::find_if(held, [&](const Box& box) { return contains(box, extent.box); });
    if (whole == held.end()) return false;
    if (cells_of_ != extent.tensor) {
      look(catalog_.layout.mesh().num_ranks());
      cells_ = pieces_.of(extent.tensor);
      cells_of_ = extent.tensor;
    }
    const auto cell = std::ranges::lower_bound(cells_, extent.box, {}, &HeldBox::box);
    if (cell != cells_.end() && cell->box == extent.box) {
      return std::ranges::binary_search(cell->holders, extent.rank);
    }
    return is_cut_otherwise(extent, *whole);
  }

  // A box in dispute may be cut in any way at all (SPEC.md, 4.4), as long as no part crosses the
  // border of any box that a rank holds.
  bool is_cut_otherwise(const Extent& extent, const Box& whole) {
    if (held_of_ != extent.tensor) {
      look(catalog_.layout.mesh().num_ranks());
      std::set<Box> distinct;
      for (Rank rank = 0; rank < catalog_.layout.mesh().num_ranks(); ++rank) {
        const std::vector<Box> boxes = pieces_.on(extent.tensor, rank);
        distinct.insert(boxes.begin(), boxes.end());
      }
      held_.assign(distinct.begin(), distinct.end());
      held_of_ = extent.tensor;
    }
    look(std::ssize(held_));
    bool disputed = false;
    for (const Box& other : held_) {
      if (intersect(other, extent.box) && !contains(other, extent.box)) return false;
      disputed = disputed || (other != whole && intersect(other, whole));
    }
    return disputed;
  }

  void look(std::int64_t times) {
    looks_ += times;
    if (looks_ <= most_looks) return;
    throw Error(Errc::out_of_memory,
                fmt::format("to see which rank stores what takes more than {} looks", most_looks),
                "RM605");
  }

  // Boxes in dispute may overlap where they are cut otherwise, or not at all, and leave holes of
  // the same size. Other boxes that a layout gives are equal or disjoint.
  void check_cover(std::size_t tensor, const TensorDesc& desc) const {
    std::vector<Box> boxes;
    boxes.reserve(extents_.of(tensor).size());
    for (const std::uint32_t number : extents_.of(tensor)) {
      const Extent& extent = extents_.extents()[number];
      if (extent.copy == 0) boxes.push_back(extent.box);
    }
    Coverage coverage = cover(desc.extent, boxes);
    if (coverage.doubled.size() > most_holes_to_report) {
      coverage.doubled.resize(most_holes_to_report);
    }
    for (const Box& doubled : coverage.doubled) {
      complain("RM304", desc, doubled, "two pieces of copy 0 hold it");
    }
    report_holes(tensor, desc, std::move(coverage.missing));
  }

  void check_box(const TensorDesc& desc, const Extent& extent) {
    const std::vector<Box> held = pieces_.on(extent.tensor, extent.rank);
    if (!is_wanted(extent, held)) {
      complain("RM304", desc, extent.box,
               fmt::format("rank {} stores it, but the layout gives {} to that rank", extent.rank,
                           list_of(held)));
    }
    byte_view(desc, extent.box);  // throws if a border falls within a byte
  }

  // The extents come by copy, then by box: copy k of a box stands for k + 1 of them, on ranks of
  // their own.
  void check_copies(std::size_t tensor, const TensorDesc& desc) const {
    std::map<Box, std::vector<Rank>> ranks_of;
    for (const std::uint32_t number : extents_.of(tensor)) {
      const Extent& extent = extents_.extents()[number];
      if (extent.copy == 0 && extents_.copies() == 1) continue;
      std::vector<Rank>& ranks = ranks_of[extent.box];
      if (extent.copy != ranks.size()) {
        complain("RM304", desc, extent.box,
                 fmt::format("rank {} stores copy {}, but there are {} before it", extent.rank,
                             extent.copy, ranks.size()));
      } else if (std::ranges::find(ranks, extent.rank) != ranks.end()) {
        complain("RM304", desc, extent.box, fmt::format("rank {} stores it twice", extent.rank));
      }
      ranks.push_back(extent.rank);
    }
  }

  // What of a tensor no shard that was read stores as copy 0.
  std::vector<Box> not_stored(std::size_t tensor, const TensorDesc& desc) const {
    const auto numbers = extents_.of(tensor);
    std::vector<Box> holes{desc.extent};
    if (numbers.size() > most_boxes_to_cut) return holes;
    for (const std::uint32_t number : numbers) {
      const Extent& extent = extents_.extents()[number];
      if (extent.copy == 0) holes = without(holes, extent.box);
    }
    return holes;
  }

  // The absent shards themselves were reported: what they held is no hole.
  void forgive_unread(std::size_t tensor, const TensorDesc& desc, std::vector<Box>& holes) const {
    for (const Rank rank : unread_) {
      if (holes.empty() || holes.size() > most_boxes_to_cut) return;
      for (const Box& elsewhere : pieces_.on(tensor, rank)) {
        if (desc.extent.empty()) {
          holes.clear();
        } else {
          holes = without(holes, elsewhere);
        }
      }
    }
  }

  void report_holes(std::size_t tensor, const TensorDesc& desc, std::vector<Box> holes) const {
    // Whoever looks for every hole of many shards has much to look for.
    if (std::ssize(unread_) * std::ssize(catalog_.tensors) > most_looks) return;
    forgive_unread(tensor, desc, holes);
    if (holes.size() > most_holes_to_report) holes.resize(most_holes_to_report);
    for (const Box& hole : holes) complain("RM301", desc, hole, "no shard stores it as copy 0");
  }

  void complain(const char* id, const TensorDesc& desc, const Box& box,
                const std::string& why) const {
    Finding finding;
    finding.id = id;
    finding.message = fmt::format("cannot use '{}': of {}, {}: {}", complaints_.root().string(),
                                  to_string(desc), to_string(box), why);
    finding.tensor = desc.name;
    finding.box = box;
    complaints_.add(std::move(finding));
  }

  const Catalog& catalog_;
  const Pieces pieces_;
  static constexpr std::size_t no_tensor = ~std::size_t{0};
  std::size_t cells_of_ = no_tensor;  // the tensor of which cells_ are the boxes
  std::vector<HeldBox> cells_;
  std::size_t held_of_ = no_tensor;  // the one of which held_ are, as ranks hold them
  std::vector<Box> held_;
  std::int64_t looks_ = 0;
  const ExtentMap& extents_;
  std::span<const Rank> unread_;
  const Complaints& complaints_;
};

}  // namespace

void check_placement(const Catalog& catalog, const ExtentMap& extents,
                     std::span<const Rank> unread_ranks, const Complaints& complaints) {
  TensorCheck tensors(catalog, extents, unread_ranks, complaints);
  for (std::size_t tensor = 0; tensor < catalog.tensors.size(); ++tensor) {
    try {
      tensors.check(tensor);
    } catch (const Error& error) {
      if (!error.id().empty()) throw;  // a finding, on its way to the caller
      complaints.add("RM303", std::string(manifest_name), error.what());
    }
  }
}

}  // namespace remesh::native
