#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/schema/tensor.hpp"
#include "rules.hpp"
#include "values.hpp"

namespace remesh::detail {

/// Which rule claims a name. A state of an optimizer is claimed by whoever claims its parameter.
std::optional<Claim> claim_of(const NameTable& names, std::string_view name);

/// Which rule claims each tensor. Throws Error(unsupported, RM310), which lists the first few, if
/// none claims some of them.
std::vector<Claim> claim_all(const MapRules& rules, std::span<const TensorDesc> tensors);

/// How many layers a model has, and how many experts each of them; 0 where no name has any.
struct Counts {
  Index layers = 0;
  Index experts = 0;
};

/// What the map says; layers of which it says nothing, as many as the claims show. Throws
/// Error(corrupt, RM303) if a tensor is of a layer or an expert beyond.
Counts count_all(const MapRules& rules, const Values& values, std::span<const Claim> claims);

/// Throws Error(unsupported, RM310) if a tensor is of a layer that the map says has none of it.
void check_layers(const MapRules& rules, const Values& values, std::span<const TensorDesc> tensors,
                  std::span<const Claim> claims, const Counts& counts);

/// Throws Error(incomplete, RM302), which lists the first few, if needed tensors are absent. States
/// of optimizers are not asked for.
void require_all(const MapRules& rules, const Values& values, std::span<const Claim> claims,
                 const Counts& counts);

/// Where the tensors of a rule stand in the state dict. Rules with layers that follow one another
/// make a block, which is repeated for each layer; every other rule is a block of its own. Within a
/// block, rules with experts that follow one another make a run, which is repeated for each expert.
struct StateDictPlace {
  std::uint32_t block = 0;
  std::uint32_t run = 0;
};

/// The place of each rule.
std::vector<StateDictPlace> state_dict_places(const MapRules& rules);

/// "'a', 'b', ...": the first names of `count`.
std::string list_of_names(std::span<const std::string> first, std::size_t count);

}  // namespace remesh::detail
