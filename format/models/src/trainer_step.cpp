#include "remesh/models/trainer_step.hpp"

#include "config.hpp"
#include "remesh/core/error.hpp"

namespace remesh {

std::optional<Index> step_of_trainer_state(std::string_view json) {
  try {
    const detail::Config state = detail::Config::parse(json);
    const auto step = state.size("step", 0);
    return step ? step : state.size("global_step", 0);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace remesh
