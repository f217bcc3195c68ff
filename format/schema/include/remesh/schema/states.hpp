#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "remesh/schema/finding.hpp"
#include "remesh/schema/tensor.hpp"

namespace remesh {

/// The two parts of "model.norm.weight@exp_avg": a parameter, and what of its optimizer this is.
/// States are open-ended: "master", "exp_avg", "exp_avg_sq", "momentum_buffer" and any other.
struct StateName {
  std::string_view parameter;
  std::string_view state;
};

/// Splits a name at its last '@'. Nothing where there is none, or where nothing is before or behind
/// it.
std::optional<StateName> parse_state_name(std::string_view name) noexcept;

/// For each tensor: the number of the parameter of which it is a state, or -1 where it is none. A
/// tensor is a state if it is named like one and its parameter is there too.
std::vector<std::int64_t> parameters_of(std::span<const TensorDesc> tensors);

/// Tells what the states do not fit: RM303, one that has an element for each of its parameter's but
/// another shape; RM309, parameters that lack states which others with the same kind of optimizer
/// have (a master is not asked of f32 ones), and, as a warning, parameters that have none at all
/// where others have some. Each finding lists the first few. Says nothing where nobody has states.
void check_states(std::span<const TensorDesc> tensors, Findings& findings);

}  // namespace remesh
