#include "trainer_state.hpp"

#include <cstddef>
#include <string>

#include "json.hpp"
#include "remesh/core/error.hpp"

namespace remesh::safetensors {
namespace {

// {"step": n, ...} or {"global_step": n, ...}; all else is nobody's business.
class StepHandler final : public JsonHandler {
 public:
  bool open(std::size_t, bool) override { return true; }
  bool close(std::size_t) override { return true; }
  bool key(std::size_t depth, std::string_view key) override {
    is_step_ = depth == 1 && (key == "step" || key == "global_step");
    return true;
  }
  bool scalar(std::size_t depth, const JsonScalar& value) override {
    constexpr std::uint64_t most = std::uint64_t{1} << 62;
    if (depth == 1 && is_step_ && value.kind == JsonScalar::Kind::natural && value.natural < most) {
      step = static_cast<std::int64_t>(value.natural);
    }
    return true;
  }

  std::optional<std::int64_t> step;

 private:
  bool is_step_ = false;
};

}  // namespace

std::optional<std::int64_t> step_of_trainer(const FileSystem& files, const FileSystem::Path& path) {
  StepHandler handler;
  try {
    if (!files.look(path)) return std::nullopt;
    if (!parse_json(read_text(files, path, max_json_bytes), handler)) return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
  return handler.step;
}

}  // namespace remesh::safetensors
