#include "run_report.hpp"

#include <filesystem>

#include "whole_path.hpp"

namespace remesh {

std::optional<std::int64_t> named_step(const std::string& path) {
  const std::filesystem::path name = std::filesystem::path(path).filename();
  if (name.string().find("epoch") != std::string::npos) return std::nullopt;
  const auto step = step_in_name(name.string());
  return step ? step : step_in_name(whole_path(path).filename().string());  // "step-9/", a link
}

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
