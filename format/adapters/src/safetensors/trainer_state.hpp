#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "remesh/store/file_system.hpp"

namespace remesh::safetensors {

inline constexpr std::string_view trainer_state_name = "trainer_state.json";

/// What a trainer_state.json calls "step" or "global_step"; nothing where it is not there, cannot
/// be read, is no JSON or says neither: nobody depends on it.
std::optional<std::int64_t> step_of_trainer(const FileSystem& files, const FileSystem::Path& path);

}  // namespace remesh::safetensors
