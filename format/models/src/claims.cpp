#include "claims.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/error.hpp"
#include "remesh/schema/states.hpp"

namespace remesh::detail {
namespace {

constexpr std::size_t most_listed = 3;

// The absent tensors of one rule: how many there are, and the first few of them.
struct Absent {
  Index count = 0;
  std::vector<std::string> first;
};

using Place = std::pair<Index, Index>;  // layer and expert, each 0 where there is none

void look_for_gaps(const NamePattern& name, std::vector<Place> present, Range layers, Index experts,
                   Absent& absent) {
  std::ranges::sort(present);
  absent.count += layers.size() * experts - std::ssize(present);
  auto next = present.begin();
  for (Place at{layers.begin, 0}; at.first < layers.end && absent.first.size() < most_listed;
       ++at.first) {
    for (at.second = 0; at.second < experts && absent.first.size() < most_listed; ++at.second) {
      if (next != present.end() && *next == at) {
        ++next;
      } else {
        absent.first.push_back(name.name(at.first, at.second));
      }
    }
  }
}

// How many there are by what the map says, or else by the largest number that a name has.
Index count(const MapRules& rules, const Values& values, std::span<const Claim> claims,
            const std::optional<Expression>& said_by, std::int32_t Claim::*number,
            const char* what) {
  const auto last = std::ranges::max_element(claims, {}, number);
  const Index shown = last == claims.end() ? 0 : Index{(*last).*number} + 1;
  if (!said_by) return shown;
  const Index said = values.evaluate(*said_by);
  if (said < 0 || said > std::numeric_limits<std::int32_t>::max()) {
    throw Error(Errc::corrupt, fmt::format("cannot place model '{}': it cannot have {} {}",
                                           rules.name, said, what));
  }
  if (shown > said) {
    throw Error(
        Errc::corrupt,
        fmt::format("cannot place '{}': model '{}' has {} {}, numbered from 0; does config.json "
                    "belong to another model?",
                    rules.tensors[last->rule].name.name(last->layer, last->expert), rules.name,
                    said, what),
        "RM303");
  }
  return said;
}

Index count_layers(const MapRules& rules, const Values& values, std::span<const Claim> claims) {
  const auto has_layer = [](const TensorRule& rule) { return rule.name.has_layer(); };
  if (std::ranges::none_of(rules.tensors, has_layer)) return 0;
  return count(rules, values, claims, rules.layers, &Claim::layer, "layers");
}

Index count_experts(const MapRules& rules, const Values& values, std::span<const Claim> claims) {
  const auto has_expert = [](const TensorRule& rule) { return rule.name.has_expert(); };
  if (std::ranges::none_of(rules.tensors, has_expert)) return 0;
  return count(rules, values, claims, rules.experts, &Claim::expert, "experts");
}

}  // namespace

std::optional<Claim> claim_of(const NameTable& names, std::string_view name) {
  if (const auto claim = names.find(name)) return claim;
  const auto state = parse_state_name(name);
  auto claim = state ? names.find(state->parameter) : std::nullopt;
  if (claim) claim->is_state = true;
  return claim;
}

std::vector<Claim> claim_all(const MapRules& rules, std::span<const TensorDesc> tensors) {
  std::vector<Claim> claims;
  claims.reserve(tensors.size());
  std::size_t unclaimed = 0;
  std::vector<std::string> first;
  for (const TensorDesc& tensor : tensors) {
    const auto claim = claim_of(rules.names, tensor.name);
    claims.push_back(claim.value_or(Claim{}));
    if (claim) continue;
    ++unclaimed;
    if (first.size() < most_listed) first.push_back(tensor.name);
  }
  if (unclaimed == 0) return claims;
  throw Error(
      Errc::unsupported,
      fmt::format("cannot place model '{}': no rule of its map claims {} of {} tensors: {}; "
                  "give rules that do with `--rules FILE`",
                  rules.name, unclaimed, tensors.size(), list_of_names(first, unclaimed)),
      "RM310");
}

Counts count_all(const MapRules& rules, const Values& values, std::span<const Claim> claims) {
  return {count_layers(rules, values, claims), count_experts(rules, values, claims)};
}

void check_layers(const MapRules& rules, const Values& values, std::span<const TensorDesc> tensors,
                  std::span<const Claim> claims, const Counts& counts) {
  std::vector<std::optional<Range>> ranges(rules.tensors.size());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const TensorRule& rule = rules.tensors[claims[i].rule];
    if (!rule.layers) continue;
    std::optional<Range>& range = ranges[claims[i].rule];
    if (!range) range = values.layers(rule, counts.layers);
    if (claims[i].layer >= range->begin && claims[i].layer < range->end) continue;
    throw Error(
        Errc::unsupported,
        fmt::format("cannot place '{}': by the map of model '{}' layers {} to {} have such a "
                    "tensor, and {} has not; give rules that do with `--rules FILE`",
                    tensors[i].name, rules.name, range->begin, range->end - 1, claims[i].layer),
        "RM310");
  }
}

void require_all(const MapRules& rules, const Values& values, std::span<const Claim> claims,
                 const Counts& counts) {
  std::vector<std::vector<Place>> present(rules.tensors.size());
  for (const Claim& claim : claims) {
    if (claim.is_state) continue;
    present[claim.rule].emplace_back(std::max(claim.layer, 0), std::max(claim.expert, 0));
  }
  Absent absent;
  for (std::size_t i = 0; i < rules.tensors.size(); ++i) {
    const TensorRule& rule = rules.tensors[i];
    if (!values.holds(rule.needed)) continue;
    const Range layers = rule.name.has_layer() ? values.layers(rule, counts.layers) : Range{0, 1};
    look_for_gaps(rule.name, std::move(present[i]), layers,
                  rule.name.has_expert() ? counts.experts : 1, absent);
  }
  if (absent.count == 0) return;
  throw Error(Errc::incomplete,
              fmt::format("cannot place model '{}': {} tensor{} absent: {}; is a file of the "
                          "checkpoint missing?",
                          rules.name, absent.count, absent.count == 1 ? " is" : "s are",
                          list_of_names(absent.first, static_cast<std::size_t>(absent.count))),
              "RM302");
}

std::vector<StateDictPlace> state_dict_places(const MapRules& rules) {
  std::vector<StateDictPlace> places;
  std::uint32_t block = 0;
  std::uint32_t run = 0;
  bool in_layers = false;
  bool in_experts = false;
  for (const TensorRule& rule : rules.tensors) {
    const bool same_block = in_layers && rule.name.has_layer();
    if (!places.empty() && !same_block) ++block;
    if (!places.empty() && !(same_block && in_experts && rule.name.has_expert())) ++run;
    in_layers = rule.name.has_layer();
    in_experts = rule.name.has_expert();
    places.push_back({block, run});
  }
  return places;
}

std::string list_of_names(std::span<const std::string> first, std::size_t count) {
  std::string text;
  for (const std::string& name : first)
    text += fmt::format("{}'{}'", text.empty() ? "" : ", ", name);
  if (count > first.size()) text += ", ...";
  return text;
}

}  // namespace remesh::detail
