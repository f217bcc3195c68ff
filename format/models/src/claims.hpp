#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "remesh/schema/tensor.hpp"
#include "rules.hpp"
#include "values.hpp"

namespace remesh::detail {

/// Which rule claims each tensor. Throws Error(unsupported, RM310), which lists the first few, if
/// none claims some of them.
std::vector<Claim> claim_all(const MapRules& rules, std::span<const TensorDesc> tensors);

/// How many layers the model has: what the map says, or else as many as the claims show; 0 where no
/// rule of the map has layers. Throws Error(corrupt, RM303) if a tensor is of a layer beyond.
Index count_layers(const MapRules& rules, const Values& values, std::span<const Claim> claims);

/// Throws Error(incomplete, RM302), which lists the first few, if needed tensors are absent.
void require_all(const MapRules& rules, const Values& values, std::span<const Claim> claims,
                 Index layers);

/// Where the tensors of each rule stand in the state dict: rules with layers that follow one
/// another make a block, which is repeated for each layer; every other rule is a block of its own.
std::vector<std::uint32_t> blocks_of(const MapRules& rules);

/// "'a', 'b', ...": the first names of `count`.
std::string list_of_names(std::span<const std::string> first, std::size_t count);

}  // namespace remesh::detail
