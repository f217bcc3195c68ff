#include "renumbered.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "renumbering_words.hpp"

namespace remesh::detail {
namespace {

// Two scalars that are each other's by accident explain nothing.
constexpr std::int64_t least_bytes = 16;

// "model.layers.3.mlp.weight" at its number: "model.layers.", 3, ".mlp.weight".
struct Numbered {
  std::string_view prefix;
  Index number = 0;
  std::string_view suffix;
};

bool is_separator(char c) { return c == '.' || c == '/'; }

std::optional<Index> number_in(std::string_view word) {
  constexpr std::size_t most_digits = 9;
  if (word.empty() || word.size() > most_digits) return std::nullopt;
  Index number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc{} || end != word.data() + word.size() || number < 0) return std::nullopt;
  // Of two texts for one number only the usual one is meant.
  if (word.size() > 1 && word.front() == '0') return std::nullopt;
  return number;
}

// A name at each of its numbers, the outermost first.
std::vector<Numbered> numbers_of(std::string_view name) {
  std::vector<Numbered> all;
  for (std::size_t begin = 0; begin < name.size();) {
    std::size_t end = begin;
    while (end < name.size() && !is_separator(name[end])) ++end;
    if (const auto number = number_in(name.substr(begin, end - begin))) {
      all.push_back({name.substr(0, begin), *number, name.substr(end)});
    }
    begin = end + 1;
  }
  return all;
}

// All numbers of a name.
std::vector<Index> bare_numbers(std::string_view name) {
  std::vector<Index> numbers;
  for (const Numbered& numbered : numbers_of(name)) numbers.push_back(numbered.number);
  return numbers;
}

// A name without its numbers.
std::string pattern_of(std::string_view name) {
  std::string pattern;
  std::size_t done = 0;
  for (const Numbered& numbered : numbers_of(name)) {
    pattern += name.substr(done, numbered.prefix.size() - done);
    pattern += 'N';
    done = name.size() - numbered.suffix.size();
  }
  pattern += name.substr(done);
  return pattern;
}

struct Member {
  Index number = 0;
  std::string_view suffix;
  std::size_t tensor = 0;
};

// All tensors whose names begin alike, up to a number.
struct Axis {
  std::vector<Member> left;
  std::vector<Member> right;
};

using Axes = std::map<std::pair<std::size_t, std::string_view>, Axis>;  // outer ones first

class Search {
 public:
  Search(const Digested& left, const Digested& right, std::span<const Pair> pairs)
      : left_(left), right_(right), pairs_(pairs), explained_(pairs.size()) {
    for (std::size_t i = 0; i < pairs.size(); ++i) pair_of_.emplace(pairs[i].left, i);
  }

  std::vector<Explanation> run() {
    Axes axes = all_axes();
    for (auto& [key, axis] : axes) look_at(key.second, axis);
    report_mappings();
    look_for_cycles();
    std::ranges::sort(found_, {}, [](const Explanation& one) { return one.pairs.front(); });
    return std::move(found_);
  }

 private:
  using Mapping = std::map<Index, Index>;  // left number to the right one that it holds

  const TensorDesc& left_desc(std::size_t pair) const { return left_.tensors[pairs_[pair].left]; }

  // Those along which some tensor differs.
  Axes all_axes() const {
    Axes axes;
    for (const Pair& pair : pairs_) {
      for (const Numbered& at : numbers_of(left_.tensors[pair.left].name)) {
        axes.try_emplace({at.prefix.size(), at.prefix});
      }
    }
    const auto fill = [&](const Digested& side, std::vector<Member> Axis::*members) {
      for (std::size_t tensor = 0; tensor < side.tensors.size(); ++tensor) {
        for (const Numbered& at : numbers_of(side.tensors[tensor].name)) {
          const auto axis = axes.find({at.prefix.size(), at.prefix});
          if (axis == axes.end()) continue;
          (axis->second.*members).push_back({at.number, at.suffix, tensor});
        }
      }
    };
    fill(left_, &Axis::left);
    fill(right_, &Axis::right);
    return axes;
  }

  bool same(std::size_t l, std::size_t r) const {
    return left_.digests[l] == right_.digests[r] &&
           left_.tensors[l].dtype == right_.tensors[r].dtype &&
           left_.tensors[l].extent == right_.tensors[r].extent;
  }

  bool is_open(std::size_t left_tensor) const {
    const auto pair = pair_of_.find(left_tensor);
    return pair != pair_of_.end() && !explained_[pair->second];
  }

  struct Votes {
    Index members = 0;
    bool open = false;  // whether a tensor still waits for an explanation
    std::map<Index, Index> for_number;
  };

  std::map<Index, Votes> votes_of(const Axis& axis) const {
    std::map<std::pair<std::string_view, std::uint64_t>, std::vector<Member>> holders;
    for (const Member& member : axis.right) {
      holders[{member.suffix, right_.digests[member.tensor].value}].push_back(member);
    }
    std::map<Index, Votes> all;
    for (const Member& member : axis.left) {
      Votes& votes = all[member.number];
      ++votes.members;
      votes.open = votes.open || is_open(member.tensor);
      const auto there = holders.find({member.suffix, left_.digests[member.tensor].value});
      if (there == holders.end()) continue;
      for (const Member& other : there->second) {
        if (same(member.tensor, other.tensor)) ++votes.for_number[other.number];
      }
    }
    return all;
  }

  // The number on the right whose tensors these are: most of them, and more than of its own number.
  static std::optional<Index> elected(Index own, const Votes& votes) {
    if (!votes.open || votes.for_number.empty()) return std::nullopt;
    const auto best = std::ranges::max_element(
        votes.for_number, {}, [](const auto& candidate) { return candidate.second; });
    if (2 * best->second <= votes.members || best->first == own) return std::nullopt;
    const auto mine = votes.for_number.find(own);
    if (mine != votes.for_number.end() && mine->second >= best->second) return std::nullopt;
    return best->first;
  }

  void look_at(std::string_view prefix, const Axis& axis) {
    Mapping mapping;
    std::set<Index> numbers;
    for (const auto& [number, votes] : votes_of(axis)) {
      numbers.insert(number);
      if (const auto other = elected(number, votes)) mapping.emplace(number, *other);
    }
    if (mapping.empty()) return;
    const std::vector<std::size_t> pairs = explain(axis, mapping);
    if (pairs.empty()) return;
    Renumbering renumbering{std::string(prefix), mapping, {numbers.begin(), numbers.end()}};
    const std::string words = words_of(renumbering);
    Group& group = groups_[{pattern_of(prefix), words}];
    group.prefixes.push_back(renumbering.prefix);
    group.pairs.insert(group.pairs.end(), pairs.begin(), pairs.end());
  }

  // Marks the pairs that the mapping explains, if they have bytes enough to prove it.
  std::vector<std::size_t> explain(const Axis& axis, const Mapping& mapping) {
    std::map<std::pair<Index, std::string_view>, std::size_t> rights;
    for (const Member& member : axis.right) {
      rights.emplace(std::pair(member.number, member.suffix), member.tensor);
    }
    std::vector<std::size_t> pairs;
    std::int64_t bytes = 0;
    for (const Member& member : axis.left) {
      const auto number = mapping.find(member.number);
      if (number == mapping.end() || !is_open(member.tensor)) continue;
      const auto other = rights.find({number->second, member.suffix});
      if (other == rights.end() || !same(member.tensor, other->second)) continue;
      pairs.push_back(pair_of_.at(member.tensor));
      bytes += num_bytes(left_.tensors[member.tensor]);
    }
    if (bytes < least_bytes) return {};
    for (const std::size_t pair : pairs) explained_[pair] = true;
    return pairs;
  }

  void add(std::string message, std::string next_step, std::vector<std::size_t> pairs) {
    std::ranges::sort(pairs);
    Finding finding;
    finding.id = "RM524";
    finding.message = std::move(message);
    finding.next_step = std::move(next_step);
    found_.push_back({std::move(finding), std::move(pairs)});
  }

  void report_mappings() {
    for (const auto& [key, group] : groups_) {
      const std::size_t count = group.pairs.size();
      add(fmt::format("{}: {} of the left checkpoint {}, bit for bit, what the right one has under "
                      "another number",
                      place_and(key.second, group.prefixes),
                      count == 1 ? "1 tensor" : fmt::format("{} tensors", count),
                      count == 1 ? "is" : "are"),
          "number them as the right checkpoint does, and convert again", group.pairs);
    }
  }

  // For each open pair the pair whose right side is its left one.
  std::unordered_map<std::size_t, std::size_t> successors() const {
    std::map<std::uint64_t, std::vector<std::size_t>> holders;
    for (std::size_t pair = 0; pair < pairs_.size(); ++pair) {
      if (explained_[pair] || num_bytes(left_desc(pair)) < least_bytes) continue;
      holders[right_.digests[pairs_[pair].right].value].push_back(pair);
    }
    std::unordered_map<std::size_t, std::size_t> next;
    for (std::size_t pair = 0; pair < pairs_.size(); ++pair) {
      if (explained_[pair] || num_bytes(left_desc(pair)) < least_bytes) continue;
      const auto there = holders.find(left_.digests[pairs_[pair].left].value);
      if (there == holders.end()) continue;
      if (const auto best = nearest(pair, there->second)) next.emplace(pair, *best);
    }
    return next;
  }

  // Of several with the same bytes one of the same layer is meant.
  std::optional<std::size_t> nearest(std::size_t pair,
                                     const std::vector<std::size_t>& others) const {
    std::optional<std::size_t> best;
    const auto numbers = bare_numbers(left_desc(pair).name);
    for (const std::size_t other : others) {
      if (!same(pairs_[pair].left, pairs_[other].right)) continue;
      if (bare_numbers(left_desc(other).name) == numbers) return other;
      if (!best) best = other;
    }
    return best;
  }

  void look_for_cycles() {
    constexpr std::size_t most = 16;
    const auto next = successors();
    std::map<std::vector<std::string>, std::vector<std::vector<std::size_t>>> kinds;
    for (std::size_t pair = 0; pair < pairs_.size(); ++pair) {
      std::vector<std::size_t> cycle{pair};
      auto at = next.find(pair);
      while (at != next.end() && at->second != pair && cycle.size() < most) {
        cycle.push_back(at->second);
        at = next.find(at->second);
      }
      const bool closed = at != next.end() && at->second == pair;
      if (!closed || std::ranges::any_of(cycle, [&](auto one) { return explained_[one]; }))
        continue;
      std::vector<std::string> patterns;
      patterns.reserve(cycle.size());
      for (const std::size_t one : cycle) {
        explained_[one] = true;
        patterns.push_back(pattern_of(left_desc(one).name));
      }
      kinds[patterns].push_back(std::move(cycle));
    }
    for (const auto& [patterns, cycles] : kinds) report_cycles(cycles);
  }

  void report_cycles(const std::vector<std::vector<std::size_t>>& cycles) {
    std::vector<std::string> names;
    for (const std::size_t pair : cycles.front()) names.push_back(left_desc(pair).name);
    std::vector<std::size_t> pairs;
    for (const auto& cycle : cycles) pairs.insert(pairs.end(), cycle.begin(), cycle.end());
    const std::size_t more = cycles.size() - 1;
    add(fmt::format("{}{}: bit for bit", words_of_cycle(names),
                    more == 0
                        ? ""
                        : fmt::format(", and so are {} more {} of tensors with such names", more,
                                      names.size() == 2 ? (more == 1 ? "pair" : "pairs")
                                                        : (more == 1 ? "set" : "sets"))),
        "give each of them the name that the right checkpoint has for its numbers, and convert "
        "again",
        std::move(pairs));
  }

  struct Group {
    std::vector<std::string> prefixes;
    std::vector<std::size_t> pairs;
  };

  const Digested& left_;
  const Digested& right_;
  std::span<const Pair> pairs_;
  std::vector<bool> explained_;
  std::unordered_map<std::size_t, std::size_t> pair_of_;  // by the number of the left tensor
  std::map<std::pair<std::string, std::string>, Group> groups_;
  std::vector<Explanation> found_;
};

}  // namespace

std::vector<Explanation> find_renumbered(const Digested& left, const Digested& right,
                                         std::span<const Pair> pairs) {
  return Search(left, right, pairs).run();
}

}  // namespace remesh::detail
