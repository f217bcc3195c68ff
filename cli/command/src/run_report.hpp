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
/// The step of training that a path's last name says: as step_in_name(), but of epochs nobody knows
/// how many steps they had.
std::optional<std::int64_t> named_step(const std::string& path);
/// A number or null.
Json step_json(std::optional<std::int64_t> step);
/// {"name": "latest", "target": "step-9", "step": 9}.
Json json_of(std::span<const RunPointer> pointers);

}  // namespace remesh
