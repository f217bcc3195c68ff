#pragma once

#include <optional>
#include <string_view>

#include "remesh/schema/box.hpp"

namespace remesh {

/// The step that a trainer_state.json says: "step", or "global_step" as transformers has it.
/// Nothing where it says none, or is no such text: it is carried as it is, whatever it holds.
std::optional<Index> step_of_trainer_state(std::string_view json);

}  // namespace remesh
