#include "remesh/models/model_map.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "claims.hpp"
#include "config.hpp"
#include "placing.hpp"
#include "remesh/core/error.hpp"
#include "rules.hpp"
#include "values.hpp"

namespace remesh {

struct ModelMap::Rules {
  detail::MapRules map;
};

namespace {

using detail::Claim;
using detail::MapRules;
using detail::TensorRule;

constexpr Index most_tensors = 1'000'000;  // that are listed: beyond any model

// Sorts claims as the state dict has them: states of optimizers behind all parameters.
auto order_of(const std::vector<detail::StateDictPlace>& places, const Claim& claim) {
  const auto [block, run] = places[claim.rule];
  return std::tuple(claim.is_state, block, claim.layer, run, claim.expert, claim.rule);
}

// The claims of one rule: for each layer and each expert that its name has a place for.
void add_claims(std::uint32_t rule, const detail::NamePattern& name, Range layers, Index experts,
                std::vector<Claim>& claims) {
  if (!name.has_layer()) layers = {0, 1};
  if (!name.has_expert()) experts = 1;
  for (Index layer = layers.begin; layer < layers.end; ++layer) {
    for (Index expert = 0; expert < experts; ++expert) {
      claims.push_back({.rule = rule,
                        .layer = name.has_layer() ? static_cast<std::int32_t>(layer) : -1,
                        .expert = name.has_expert() ? static_cast<std::int32_t>(expert) : -1});
    }
  }
}

// How many tensors that will be, or more than may be listed.
Index count_claims(const detail::NamePattern& name, const detail::Counts& counts) {
  const Index layers = name.has_layer() ? std::min(counts.layers, most_tensors + 1) : 1;
  const Index experts = name.has_expert() ? std::min(counts.experts, most_tensors + 1) : 1;
  return layers * experts;
}

// All that the model must have, in the order of the rules.
std::vector<Claim> needed_claims(const MapRules& rules, const detail::Values& values) {
  const detail::Counts counts = count_all(rules, values, {});
  std::vector<Claim> claims;
  for (std::uint32_t rule = 0; rule < rules.tensors.size(); ++rule) {
    const detail::NamePattern& name = rules.tensors[rule].name;
    if (!values.holds(rules.tensors[rule].needed)) continue;
    if (std::ssize(claims) + count_claims(name, counts) > most_tensors) {
      throw Error(
          Errc::unsupported,
          fmt::format("cannot list the tensors of model '{}': with {} layers there are more "
                      "than {}",
                      rules.name, counts.layers, most_tensors));
    }
    add_claims(rule, name, values.layers(rules.tensors[rule], counts.layers), counts.experts,
               claims);
  }
  return claims;
}

}  // namespace

ModelMap::ModelMap(std::unique_ptr<Rules> rules) : rules_(std::move(rules)) {}
ModelMap::ModelMap(ModelMap&&) noexcept = default;
ModelMap& ModelMap::operator=(ModelMap&&) noexcept = default;
ModelMap::~ModelMap() = default;

ModelMap ModelMap::parse(std::string_view toml, std::string_view where) {
  return ModelMap(std::make_unique<Rules>(Rules{detail::parse_rules(toml, where)}));
}

const std::string& ModelMap::name() const noexcept { return rules_->map.name; }

bool ModelMap::fits(std::string_view config_json) const {
  const auto type = detail::Config::parse(config_json).text("model_type");
  return type && std::ranges::find(rules_->map.model_types, *type) != rules_->map.model_types.end();
}

Layout ModelMap::place(std::span<const TensorDesc> tensors, std::string_view config_json,
                       const Mesh& mesh, const std::optional<StageRule>& stages) const {
  const MapRules& rules = rules_->map;
  const detail::Config config = detail::Config::parse(config_json);
  const detail::Values values(rules, config);

  const std::vector<Claim> claims = claim_all(rules, tensors);
  const detail::Counts counts = count_all(rules, values, claims);
  check_layers(rules, values, tensors, claims, counts);
  require_all(rules, values, claims, counts);

  detail::Placing placing(rules, values);
  std::vector<Placed> placed;
  placed.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    placed.push_back({placing.place(claims[i], tensors[i]), claims[i].layer, claims[i].expert});
  }

  const Stages all_layers = counts.layers == 0 ? Stages{} : even_stages(counts.layers, 1);
  return Layout(Mesh(), placing.placements(), std::move(placed), all_layers).on(mesh, stages);
}

StageCosts ModelMap::stage_costs(std::string_view config_json) const {
  const MapRules& rules = rules_->map;
  const detail::Config config = detail::Config::parse(config_json);
  const detail::Values values(rules, config);
  const detail::Counts counts = count_all(rules, values, {});
  StageCosts costs;
  costs.layers.resize(static_cast<std::size_t>(counts.layers));
  for (const Claim& claim : needed_claims(rules, values)) {
    const TensorRule& rule = rules.tensors[claim.rule];
    if (!rule.shape || rule.shape->size() < 2) continue;
    double cost = 1;
    for (const Index size : values.shape(*rule.shape)) cost *= static_cast<double>(size);
    if (claim.expert >= 0 && rules.active_experts) {
      cost *= static_cast<double>(values.count(*rules.active_experts)) /
              static_cast<double>(counts.experts);
    }
    const auto stage = values.pin(rule.stage);
    if (claim.layer >= 0) {
      costs.layers[static_cast<std::size_t>(claim.layer)] += cost;
    } else if (stage == PinTo::last || stage == PinTo::ends) {
      costs.last += cost;
    }
  }
  return costs;
}

std::vector<std::size_t> ModelMap::state_dict_order(std::span<const TensorDesc> tensors) const {
  const std::vector<detail::StateDictPlace> places = state_dict_places(rules_->map);
  using Order = decltype(order_of(places, Claim{}));
  constexpr auto last = std::numeric_limits<std::uint32_t>::max();
  std::vector<Order> orders;
  orders.reserve(tensors.size());
  for (const TensorDesc& tensor : tensors) {
    const auto claim = detail::claim_of(rules_->map.names, tensor.name);
    orders.push_back(claim ? order_of(places, *claim) : Order{true, last, 0, last, 0, last});
  }
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t tensor) { return orders[tensor]; });
  return order;
}

std::vector<TensorDesc> ModelMap::needed_tensors(std::string_view config_json, DType dtype) const {
  const MapRules& rules = rules_->map;
  const detail::Config config = detail::Config::parse(config_json);
  const detail::Values values(rules, config);
  const std::vector<detail::StateDictPlace> places = state_dict_places(rules);

  std::vector<Claim> claims = needed_claims(rules, values);
  std::ranges::sort(claims, {}, [&](const Claim& claim) { return order_of(places, claim); });
  std::vector<TensorDesc> tensors;
  tensors.reserve(claims.size());
  for (const Claim& claim : claims) {
    const TensorRule& rule = rules.tensors[claim.rule];
    if (!rule.shape) {
      throw Error(Errc::invalid_argument,
                  fmt::format("cannot list the tensors of model '{}': its map gives '{}' no shape",
                              rules.name, rule.name.name(claim.layer, claim.expert)));
    }
    tensors.push_back(
        {rule.name.name(claim.layer, claim.expert), dtype, Box::whole(values.shape(*rule.shape))});
  }
  return tensors;
}

}  // namespace remesh
