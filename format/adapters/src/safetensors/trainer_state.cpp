#include "trainer_state.hpp"

#include "json.hpp"
#include "remesh/core/error.hpp"
#include "remesh/models/trainer_step.hpp"

namespace remesh::safetensors {

std::optional<std::int64_t> step_of_trainer(const FileSystem& files, const FileSystem::Path& path) {
  try {
    if (!files.look(path)) return std::nullopt;
    return step_of_trainer_state(read_text(files, path, max_json_bytes));
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace remesh::safetensors
