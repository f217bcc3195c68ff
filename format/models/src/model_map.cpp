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
#include "legality.hpp"
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

// A claim's place in the state dict.
using StateDictPlace = std::tuple<std::uint32_t, std::int32_t, std::uint32_t>;

StateDictPlace state_dict_place(const std::vector<std::uint32_t>& blocks, const Claim& claim) {
  return {blocks[claim.rule], claim.layer, claim.rule};
}

// All that the model must have, in the order of the rules.
std::vector<Claim> needed_claims(const MapRules& rules, const detail::Values& values) {
  const Index layers = count_layers(rules, values, {});
  std::vector<Claim> claims;
  for (std::uint32_t rule = 0; rule < rules.tensors.size(); ++rule) {
    const bool by_layer = rules.tensors[rule].name.has_layer();
    if (!values.holds(rules.tensors[rule].needed)) continue;
    if (std::ssize(claims) + (by_layer ? layers : 1) > most_tensors) {
      throw Error(
          Errc::unsupported,
          fmt::format("cannot list the tensors of model '{}': with {} layers there are more "
                      "than {}",
                      rules.name, layers, most_tensors));
    }
    if (!by_layer) claims.push_back({rule, -1});
    for (std::int32_t layer = 0; by_layer && layer < layers; ++layer)
      claims.push_back({rule, layer});
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
                       const Mesh& mesh) const {
  const MapRules& rules = rules_->map;
  const detail::Config config = detail::Config::parse(config_json);
  const detail::Values values(rules, config);

  const std::vector<Claim> claims = claim_all(rules, tensors);
  const Index layers = count_layers(rules, values, claims);
  require_all(rules, values, claims, layers);

  detail::Placing placing(rules, values);
  std::vector<Placed> placed;
  placed.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    placed.push_back({placing.place(claims[i].rule, tensors[i]), claims[i].layer});
  }

  check_groups(rules, placing.placements(), mesh);
  const Stages all_layers = layers == 0 ? Stages{} : even_stages(layers, 1);
  return Layout(Mesh(), placing.placements(), std::move(placed), all_layers).on(mesh);
}

std::vector<std::size_t> ModelMap::state_dict_order(std::span<const TensorDesc> tensors) const {
  const std::vector<std::uint32_t> blocks = blocks_of(rules_->map);
  constexpr auto last = std::numeric_limits<std::uint32_t>::max();
  std::vector<StateDictPlace> places;
  places.reserve(tensors.size());
  for (const TensorDesc& tensor : tensors) {
    const auto claim = rules_->map.names.find(tensor.name);
    places.push_back(claim ? state_dict_place(blocks, *claim) : StateDictPlace{last, 0, 0});
  }
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t tensor) { return places[tensor]; });
  return order;
}

std::vector<TensorDesc> ModelMap::needed_tensors(std::string_view config_json, DType dtype) const {
  const MapRules& rules = rules_->map;
  const detail::Config config = detail::Config::parse(config_json);
  const detail::Values values(rules, config);
  const std::vector<std::uint32_t> blocks = blocks_of(rules);

  std::vector<Claim> claims = needed_claims(rules, values);
  std::ranges::sort(claims, {},
                    [&](const Claim& claim) { return state_dict_place(blocks, claim); });
  std::vector<TensorDesc> tensors;
  tensors.reserve(claims.size());
  for (const Claim& claim : claims) {
    const TensorRule& rule = rules.tensors[claim.rule];
    if (!rule.shape) {
      throw Error(Errc::invalid_argument,
                  fmt::format("cannot list the tensors of model '{}': its map gives '{}' no shape",
                              rules.name, rule.name.name(claim.layer)));
    }
    tensors.push_back({rule.name.name(claim.layer), dtype, Box::whole(values.shape(*rule.shape))});
  }
  return tensors;
}

}  // namespace remesh
