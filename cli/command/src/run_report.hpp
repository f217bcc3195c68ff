#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "json_parts.hpp"
#include "remesh/adapters/run.hpp"

/// @file
/// What `inspect` and `latest` say of a directory of checkpoints in the same words.

namespace remesh {

/// "12000", or `none` where there is no step.
std::string step_text(std::optional<std::int64_t> step, std::string_view none);
/// A number or null.
Json step_json(std::optional<std::int64_t> step);
/// {"name": "latest", "target": "step-9", "step": 9}.
Json json_of(std::span<const RunPointer> pointers);

}  // namespace remesh
