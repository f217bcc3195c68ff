#include "run_report.hpp"

namespace remesh {

std::string step_text(std::optional<std::int64_t> step, std::string_view none) {
  return step ? std::to_string(*step) : std::string(none);
}

Json step_json(std::optional<std::int64_t> step) { return step ? Json(*step) : Json(nullptr); }

Json json_of(std::span<const RunPointer> pointers) {
  Json all = Json::array();
  for (const RunPointer& pointer : pointers) {
    all.push_back({{"name", pointer.name},
                   {"target", text_or_null(pointer.target)},
                   {"step", step_json(pointer.step)}});
  }
  return all;
}

}  // namespace remesh
