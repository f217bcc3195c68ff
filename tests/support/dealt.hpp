#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "remesh/schema/layout.hpp"
#include "remesh/schema/tensor.hpp"

/// @file
/// Which elements a rank holds, worked out one element at a time from what placement.hpp says, by
/// dealing indices like cards. Slow, and shares no code with the schema but its nouns.

namespace remesh::test {

using Hand = std::vector<Index>;  ///< indices of a dim that a rank has, in its order

class Dealer {
 public:
  Dealer(const Layout& layout, std::span<const TensorDesc> tensors)
      : layout_(layout), tensors_(tensors), sizes_(sizes_of(layout.mesh())) {
    const Mesh& mesh = layout.mesh();
    std::map<std::string, Index> at;
    std::map<std::string, Index> of_experts;
    for (const Axis& axis : mesh.axes()) at[axis.name] = 0;
    for (const Axis& axis : mesh.expert_axes()) of_experts[axis.name] = 0;
    for (Rank rank = 0; rank < mesh.num_ranks(); ++rank) {
      seats_.push_back(at);
      if (mesh.expert_axes().empty()) {
        seats_.back()["etp"] = at["tp"];
        seats_.back()["edp"] = at["dp"] * sizes_["cp"] + at["cp"];
      }
      seats_.back().insert(of_experts.begin(), of_experts.end());
      turn(mesh.axes(), at);
      turn(mesh.expert_axes(), of_experts);
    }
  }

  /// The places, row-major in the whole tensor, of the elements that the rank holds, in its order.
  std::vector<Index> elements(std::size_t tensor, Rank rank) const {
    const std::vector<Index> local = local_elements(tensor, rank);
    const Placement& how = layout_.placement(tensor);
    if (!how.flat) return local;
    std::vector<Index> mine;
    for (const Index number : from_line(tensor, rank)) {
      mine.push_back(local[static_cast<std::size_t>(number)]);
    }
    return mine;
  }

  static std::map<std::string, Index> sizes_of(const Mesh& mesh) {
    std::map<std::string, Index> sizes;
    for (const Axis& axis : mesh.axes()) sizes[axis.name] = axis.size;
    for (const Axis& axis : mesh.expert_axes()) sizes[axis.name] = axis.size;
    for (const char* axis : {"tp", "cp", "dp", "pp"}) sizes.emplace(axis, 1);
    if (mesh.expert_axes().empty()) {
      sizes["etp"] = sizes["tp"];
      sizes["edp"] = sizes["cp"] * sizes["dp"];
    }
    for (const char* axis : {"etp", "ep", "edp"}) sizes.emplace(axis, 1);
    return sizes;
  }

 private:
  struct Seat {
    Index count = 1;
    Index at = 0;
  };

  // An odometer, the first axis fastest.
  static void turn(std::span<const Axis> axes, std::map<std::string, Index>& at) {
    for (const Axis& axis : axes) {
      if (++at[axis.name] < axis.size) break;
      at[axis.name] = 0;
    }
  }

  Index position(Rank rank, const std::string& axis) const {
    const auto& seats = seats_[static_cast<std::size_t>(rank)];
    const auto found = seats.find(axis);
    return found == seats.end() ? 0 : found->second;
  }

  Index size(const std::string& axis) const {
    const auto found = sizes_.find(axis);
    return found == sizes_.end() ? 1 : found->second;
  }

  Seat seat(const std::vector<std::string>& over, Rank rank) const {
    Seat seat;
    for (auto axis = over.rbegin(); axis != over.rend(); ++axis) {
      seat.at = seat.at * size(*axis) + position(rank, *axis);
      seat.count *= size(*axis);
    }
    return seat;
  }

  // Cards in packs of `block`, dealt by a rule: the seat of each place.
  static std::vector<Index> plain(const Split& split, Index total, Index count, Index block) {
    std::vector<Index> seats;
    if (split.rule == SplitRule::sizes) {
      for (Index at = 0; at < count; ++at) {
        seats.insert(seats.end(),
                     static_cast<std::size_t>(split.sizes[static_cast<std::size_t>(at)]), at);
      }
      return seats;
    }
    Index packs = 0;
    while (packs * block < total) ++packs;
    std::vector<Index> packs_of(static_cast<std::size_t>(count), 0);
    if (split.rule == SplitRule::balanced) {
      for (Index pack = 0; pack < packs; ++pack) ++packs_of[static_cast<std::size_t>(pack % count)];
    } else {
      Index each = 0;
      while (each * count < packs) ++each;
      Index left = packs;
      for (Index& one : packs_of) {
        one = std::min(each, left);
        left -= one;
      }
    }
    for (Index at = 0; at < count; ++at) {
      for (Index k = 0; k < packs_of[static_cast<std::size_t>(at)] * block; ++k) {
        if (std::ssize(seats) < total) seats.push_back(at);
      }
    }
    return seats;
  }

  // Whether `at` gets each place of a run that is divided by itself.
  static std::vector<bool> run(const Split& split, const Part& part, Seat seat, Index block) {
    std::vector<bool> mine(static_cast<std::size_t>(part.size));
    const bool whole = part.groups > 0 && part.groups % seat.count == 0;
    const bool shared = part.groups > 0 && !whole && part.beyond == Beyond::share;
    std::vector<Index> seats;
    if (!whole && !shared) seats = plain(split, part.size, seat.count, block);
    for (Index place = 0; place < part.size; ++place) {
      bool gets = false;
      if (whole || shared) {
        const Index group = place * part.groups / part.size;
        gets = whole ? group * seat.count / part.groups == seat.at
                     : seat.at * part.groups / seat.count == group;
      } else {
        gets = seats[static_cast<std::size_t>(place)] == seat.at;
      }
      mine[static_cast<std::size_t>(place)] = gets;
    }
    return mine;
  }

  static std::vector<bool> all_runs(const Split& split, Index total, Seat seat, Index block) {
    if (split.parts.empty()) {
      return run(split, {total, split.groups, split.beyond}, seat, block);
    }
    std::vector<bool> mine;
    for (const Part& part : split.parts) {
      const std::vector<bool> more = run(split, part, seat, block);
      mine.insert(mine.end(), more.begin(), more.end());
    }
    return mine;
  }

  static Hand deal(const Split& split, const Scaled& scaled, const Hand& hand, Seat seat) {
    Hand mine;
    // Packs that keep both kinds of borders.
    Index block = split.block;
    while (block % scaled.block != 0) block += split.block;
    if (scaled.of == 0) {
      const auto gets = all_runs(split, std::ssize(hand), seat, block);
      for (std::size_t place = 0; place < hand.size(); ++place) {
        if (gets[place]) mine.push_back(hand[place]);
      }
      return mine;
    }
    // A scale goes where the rows go for which it stands.
    Hand rows;
    for (const Index scale : hand) {
      for (Index row = scale * scaled.block; row < std::min((scale + 1) * scaled.block, scaled.of);
           ++row) {
        rows.push_back(row);
      }
    }
    const auto gets = all_runs(split, std::ssize(rows), seat, block);
    for (std::size_t place = 0; place < rows.size(); ++place) {
      if (!gets[place]) continue;
      const Index scale = rows[place] / scaled.block;
      if (mine.empty() || mine.back() != scale) mine.push_back(scale);
    }
    return mine;
  }

  bool pin_allows(const Pin& pin, Index at, Index size, const Placed& placed) const {
    const auto& layers = layout_.stages().layers;
    std::set<Index> allowed(pin.coordinates.begin(), pin.coordinates.end());
    if (pin.to == PinTo::first || pin.to == PinTo::ends) allowed.insert(0);
    if (pin.to == PinTo::last || pin.to == PinTo::ends) allowed.insert(size - 1);
    if (pin.to == PinTo::layer) {
      Index layer = placed.layer;
      std::size_t stage = 0;
      while (layer >= layers[stage]) layer -= layers[stage++];
      allowed.insert(static_cast<Index>(stage) % size);
    }
    if (pin.to == PinTo::expert) {
      const Split even;
      allowed.insert(plain(even, pin.experts, size, 1)[static_cast<std::size_t>(placed.expert)]);
    }
    return allowed.contains(at);
  }

  bool is_here(std::size_t tensor, Rank rank) const {
    return std::ranges::all_of(layout_.placement(tensor).pins, [&](const Pin& pin) {
      return pin_allows(pin, position(rank, pin.axis), size(pin.axis), layout_.placed()[tensor]);
    });
  }

  // What the rank would have without a line.
  std::vector<Index> local_elements(std::size_t tensor, Rank rank) const {
    if (!is_here(tensor, rank)) return {};
    const Box& extent = tensors_[tensor].extent;
    std::vector<Hand> hands(static_cast<std::size_t>(extent.ndim()));
    for (int dim = 0; dim < extent.ndim(); ++dim) {
      Hand& hand = hands[static_cast<std::size_t>(dim)];
      hand.resize(static_cast<std::size_t>(extent[dim].size()));
      std::iota(hand.begin(), hand.end(), 0);
    }
    for (const Split& split : layout_.placement(tensor).splits) {
      Hand& hand = hands[static_cast<std::size_t>(split.dim)];
      Scaled scaled;
      for (const Scaled& one : layout_.placement(tensor).scaled) {
        if (one.dim == split.dim) scaled = one;
      }
      hand = deal(split, scaled, hand, seat(split.over, rank));
    }
    std::vector<Index> elements{0};
    for (int dim = 0; dim < extent.ndim(); ++dim) {
      std::vector<Index> next;
      for (const Index element : elements) {
        for (const Index index : hands[static_cast<std::size_t>(dim)]) {
          next.push_back(element * extent[dim].size() + index);
        }
      }
      elements = next;
    }
    return elements;
  }

  // The line, element by element: whose number it is, and its number there; -1 is padding.
  using Line = std::vector<std::pair<std::ptrdiff_t, Index>>;

  bool on_line(std::size_t tensor, std::size_t other) const {
    const auto& flat = layout_.placement(tensor).flat;
    const auto& of_other = layout_.placement(other).flat;
    if (!of_other || *of_other != *flat) return false;
    if (flat->unit == FlatUnit::tensor) return tensor == other;
    return flat->unit == FlatUnit::all ||
           layout_.placed()[tensor].layer == layout_.placed()[other].layer;
  }

  // The numbers of the tensor's local elements that the rank holds.
  std::vector<Index> from_line(std::size_t tensor, Rank rank) const {
    const Flat& flat = *layout_.placement(tensor).flat;
    const Seat mine = seat(flat.over, rank);
    std::vector<std::size_t> members;
    for (std::size_t other = 0; other < tensors_.size(); ++other) {
      if (on_line(tensor, other) && is_here(other, rank)) members.push_back(other);
    }
    if (flat.reversed) std::ranges::reverse(members);

    std::vector<Index> held;
    Line bucket;
    const auto deal_bucket = [&] {
      while (std::ssize(bucket) % flat.pad != 0 || std::ssize(bucket) % mine.count != 0 ||
             std::ssize(bucket) / mine.count % flat.pad_each != 0) {
        bucket.emplace_back(-1, 0);
      }
      const Index each = std::ssize(bucket) / mine.count;
      for (Index at = 0; at < std::ssize(bucket); ++at) {
        const auto& [owner, number] = bucket[static_cast<std::size_t>(at)];
        if (owner == static_cast<std::ptrdiff_t>(tensor) && at / each == mine.at) {
          held.push_back(number);
        }
      }
      bucket.clear();
    };
    for (const std::size_t member : members) {
      while (std::ssize(bucket) % flat.align != 0) bucket.emplace_back(-1, 0);
      const Index count = std::ssize(local_elements(member, rank));
      for (Index number = 0; number < count; ++number) {
        bucket.emplace_back(static_cast<std::ptrdiff_t>(member), number);
      }
      if (flat.bucket > 0 && std::ssize(bucket) >= flat.bucket) deal_bucket();
    }
    deal_bucket();
    return held;
  }

  const Layout& layout_;
  std::span<const TensorDesc> tensors_;
  std::map<std::string, Index> sizes_;
  std::vector<std::map<std::string, Index>> seats_;  // the coordinates of each rank
};

}  // namespace remesh::test
