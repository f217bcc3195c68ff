#include "claims.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "remesh/core/error.hpp"

namespace remesh::detail {
namespace {

constexpr std::size_t most_listed = 3;

// The absent tensors of one rule: how many there are, and the first few of them.
struct Absent {
  Index count = 0;
  std::vector<std::string> first;
};

void look_for_gaps(const NamePattern& name, std::vector<std::int32_t> present, Index wanted,
                   Absent& absent) {
  std::ranges::sort(present);
  absent.count += wanted - std::ssize(present);
  auto next = present.begin();
  for (Index layer = 0; layer < wanted && absent.first.size() < most_listed; ++layer) {
    if (next != present.end() && (*next == layer || !name.has_layer())) {
      ++next;
    } else {
      absent.first.push_back(name.name(layer));
    }
  }
}

}  // namespace

std::vector<Claim> claim_all(const MapRules& rules, std::span<const TensorDesc> tensors) {
  std::vector<Claim> claims;
  claims.reserve(tensors.size());
  std::size_t unclaimed = 0;
  std::vector<std::string> first;
  for (const TensorDesc& tensor : tensors) {
    const auto claim = rules.names.find(tensor.name);
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

Index count_layers(const MapRules& rules, const Values& values, std::span<const Claim> claims) {
  if (std::ranges::none_of(rules.tensors, [](const auto& rule) { return rule.name.has_layer(); })) {
    return 0;
  }
  const auto last = std::ranges::max_element(claims, {}, &Claim::layer);
  const Index shown = last == claims.end() ? 0 : Index{last->layer} + 1;
  if (!rules.layers) return shown;
  const Index said = values.evaluate(*rules.layers);
  if (said < 0 || said > std::numeric_limits<std::int32_t>::max()) {
    throw Error(Errc::corrupt,
                fmt::format("cannot place model '{}': it cannot have {} layers", rules.name, said));
  }
  if (shown > said) {
    throw Error(Errc::corrupt,
                fmt::format("cannot place '{}': model '{}' has {} layers, numbered from 0; does "
                            "config.json belong to another model?",
                            rules.tensors[last->rule].name.name(last->layer), rules.name, said),
                "RM303");
  }
  return said;
}

void require_all(const MapRules& rules, const Values& values, std::span<const Claim> claims,
                 Index layers) {
  std::vector<std::vector<std::int32_t>> present(rules.tensors.size());
  for (const Claim& claim : claims) present[claim.rule].push_back(claim.layer);
  Absent absent;
  for (std::size_t i = 0; i < rules.tensors.size(); ++i) {
    const TensorRule& rule = rules.tensors[i];
    if (!values.holds(rule.needed)) continue;
    look_for_gaps(rule.name, std::move(present[i]), rule.name.has_layer() ? layers : 1, absent);
  }
  if (absent.count == 0) return;
  throw Error(Errc::incomplete,
              fmt::format("cannot place model '{}': {} tensor{} absent: {}; is a file of the "
                          "checkpoint missing?",
                          rules.name, absent.count, absent.count == 1 ? " is" : "s are",
                          list_of_names(absent.first, static_cast<std::size_t>(absent.count))),
              "RM302");
}

std::vector<std::uint32_t> blocks_of(const MapRules& rules) {
  std::vector<std::uint32_t> blocks;
  std::uint32_t block = 0;
  bool in_layers = false;
  for (const TensorRule& rule : rules.tensors) {
    const bool continues = in_layers && rule.name.has_layer();
    if (!blocks.empty() && !continues) ++block;
    in_layers = rule.name.has_layer();
    blocks.push_back(block);
  }
  return blocks;
}

std::string list_of_names(std::span<const std::string> first, std::size_t count) {
  std::string text;
  for (const std::string& name : first)
    text += fmt::format("{}'{}'", text.empty() ? "" : ", ", name);
  if (count > first.size()) text += ", ...";
  return text;
}

}  // namespace remesh::detail
