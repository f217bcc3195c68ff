#include "lines.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "local.hpp"
#include "remesh/core/checked.hpp"
#include "remesh/core/error.hpp"

namespace remesh::detail {
namespace {

constexpr std::uint32_t no_line = ~std::uint32_t{0};

Index sum_of(Index a, Index b) {
  if (const auto sum = checked_add(a, b)) return *sum;
  throw Error(Errc::invalid_argument, "a line has more elements than 63 bits count");
}

Index rounded_up(Index value, Index multiple) {
  return value % multiple == 0 ? value : sum_of(value, multiple - value % multiple);
}

// What the length of a bucket is a multiple of: of its padding, and of that of each of its ranges.
Index length_unit(const Flat& flat, Index count) {
  const auto each = checked_multiply(count, flat.pad_each);
  const auto unit =
      each ? checked_multiply(*each / std::gcd(*each, flat.pad), flat.pad) : std::nullopt;
  if (unit) return *unit;
  throw Error(
      Errc::invalid_argument,
      fmt::format("a line over {} ranks in multiples of {} and, for each, {} is longer than "
                  "63 bits count",
                  count, flat.pad, flat.pad_each));
}

// A tensor that has its line for itself needs none worked out.
bool is_alone(const Flat& flat) { return flat.unit == FlatUnit::tensor; }

Range range_in(Index begin, Index length, Index num_elements, Joint joint) {
  const Index each = length / joint.count;
  const Index first = std::clamp(joint.at * each - begin, Index{0}, num_elements);
  const Index last = std::clamp((joint.at + 1) * each - begin, Index{0}, num_elements);
  return {first, last};
}

}  // namespace

bool has_lines(const Layout& layout) {
  return std::ranges::any_of(layout.placements(),
                             [](const Placement& how) { return how.flat.has_value(); });
}

Lines::Lines(const Layout& layout, std::span<const TensorDesc> tensors)
    : layout_(layout), tensors_(tensors), line_of_(tensors.size(), no_line) {
  // Placements are few: which of them have the same line is found by comparing.
  std::vector<const Flat*> flats;
  std::map<std::pair<std::size_t, std::int32_t>, std::uint32_t> numbers;
  for (std::uint32_t tensor = 0; tensor < tensors.size(); ++tensor) {
    const auto& flat = layout.placement(tensor).flat;
    if (!flat || is_alone(*flat)) continue;
    const auto same =
        std::ranges::find_if(flats, [&](const Flat* other) { return *other == *flat; });
    const auto at = static_cast<std::size_t>(same - flats.begin());
    if (same == flats.end()) flats.push_back(&*flat);
    const std::int32_t layer =
        flat->unit == FlatUnit::layer ? layout.placed()[tensor].layer : std::int32_t{-1};
    const auto [found, is_new] =
        numbers.emplace(std::pair(at, layer), static_cast<std::uint32_t>(members_.size()));
    if (is_new) members_.emplace_back();
    members_[found->second].push_back(tensor);
    line_of_[tensor] = found->second;
  }
  for (std::vector<std::uint32_t>& members : members_) {
    if (layout.placement(members.front()).flat->reversed) std::ranges::reverse(members);
  }
}

// The rank with the same coordinates but 0 along the line's axes: all of its set have the same
// line.
Rank Lines::first_of_set(const Flat& flat, Rank rank) const {
  for (const std::string& axis : flat.over) rank = layout_.mesh().first_along(axis, rank);
  return rank;
}

Lines::Line Lines::work_out(const std::vector<std::uint32_t>& members, Rank rank) const {
  const Flat& flat = *layout_.placement(members.front()).flat;
  const Index unit = length_unit(flat, joint_of(flat.over, layout_.mesh(), rank).count);
  Line line;
  Index end = 0;
  const auto close = [&] {
    line.buckets.push_back(rounded_up(end, unit));
    end = 0;
  };
  for (const std::uint32_t tensor : members) {
    const auto local = local_of(layout_, tensor, tensors_[tensor], rank);
    if (!local) continue;
    const Index begin = rounded_up(end, flat.align);
    line.places.emplace(tensor, Place{begin, static_cast<std::uint32_t>(line.buckets.size())});
    end = sum_of(begin, local->num_elements());
    if (flat.bucket > 0 && end >= flat.bucket) close();
  }
  close();
  return line;
}

const Lines::Line& Lines::line_for(std::uint32_t number, Rank rank) const {
  const std::vector<std::uint32_t>& members = members_[number];
  const std::pair key(number, first_of_set(*layout_.placement(members.front()).flat, rank));
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = lines_.find(key); found != lines_.end()) return *found->second;
  }
  // Two may both find out: better than that all wait for one.
  auto line = std::make_unique<const Line>(work_out(members, key.second));
  const std::scoped_lock lock(mutex_);
  return *lines_.emplace(key, std::move(line)).first->second;
}

Range Lines::range_of(std::size_t tensor, Rank rank, Index num_elements) const {
  const Flat& flat = *layout_.placement(tensor).flat;
  const Joint joint = joint_of(flat.over, layout_.mesh(), rank);
  if (is_alone(flat)) {
    return range_in(0, rounded_up(num_elements, length_unit(flat, joint.count)), num_elements,
                    joint);
  }
  const Line& line = line_for(line_of_[tensor], rank);
  const auto place = line.places.find(static_cast<std::uint32_t>(tensor));
  if (place == line.places.end()) {
    throw Error(
        Errc::invalid_argument,
        fmt::format("cannot place {}: it lies on a line that others of the line's ranks do not "
                    "have",
                    to_string(tensors_[tensor])));
  }
  return range_in(place->second.begin, line.buckets[place->second.bucket], num_elements, joint);
}

}  // namespace remesh::detail
