#include "remesh/models/trainer_step.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "config.hpp"
#include "remesh/core/error.hpp"

namespace remesh {

namespace {

// Python writes NaN and Infinity where JSON has no word for them, as in the log of a run that
// diverged. Nobody asks for those: each becomes a 0 with blanks behind.
std::string without_nan(std::string_view json) {
  constexpr std::array<std::string_view, 3> words{"-Infinity", "Infinity", "NaN"};
  std::string text(json);
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') quoted = !quoted;
    if (quoted) {
      if (text[at] == '\\') ++at;
      continue;
    }
    for (const std::string_view word : words) {
      if (std::string_view(text).substr(at, word.size()) != word) continue;
      std::fill_n(text.begin() + static_cast<std::ptrdiff_t>(at), word.size(), ' ');
      text[at] = '0';
    }
  }
  return text;
}

}  // namespace

std::optional<Index> step_of_trainer_state(std::string_view json) {
  try {
    const detail::Config state = detail::Config::parse(without_nan(json));
    const auto step = state.size("step", 0);
    return step ? step : state.size("global_step", 0);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace remesh
