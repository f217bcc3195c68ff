#include "json_parts.hpp"

#include <string>

#include "remesh/schema/mesh_text.hpp"
#include "versions.hpp"

namespace remesh {

Json new_document(std::string_view verb) {
  return {{"schema", "remesh." + std::string(verb) + "/1"}, {"tool", tool_name()}};
}

Json text_or_null(std::string_view text) { return text.empty() ? Json(nullptr) : Json(text); }

Json json_of(const Mesh& mesh) {
  Json axes = Json::array();
  for (const Axis& axis : mesh.axes()) axes.push_back({{"name", axis.name}, {"size", axis.size}});
  Json expert_axes = Json::array();
  for (const Axis& axis : mesh.expert_axes()) {
    expert_axes.push_back({{"name", axis.name}, {"size", axis.size}});
  }
  return {{"text", to_text(mesh)},
          {"ranks", mesh.num_ranks()},
          {"axes_fastest_first", axes},
          {"expert_axes_fastest_first", expert_axes},
          {"virtual_stages", mesh.virtual_stages()}};
}

Json shape_json(const Box& extent) {
  Json sizes = Json::array();
  for (int dim = 0; dim < extent.ndim(); ++dim) sizes.push_back(extent[dim].size());
  return sizes;
}

Json json_of(const Finding& finding) {
  Json bytes;
  if (finding.bytes) bytes = {{"begin", finding.bytes->begin}, {"end", finding.bytes->end}};
  Json box;
  if (finding.box) {
    box = Json::array();
    for (int dim = 0; dim < finding.box->ndim(); ++dim) {
      box.push_back({(*finding.box)[dim].begin, (*finding.box)[dim].end});
    }
  }
  return {{"id", finding.id},
          {"severity", to_string(finding.severity)},
          {"message", finding.message},
          {"file", text_or_null(finding.file)},
          {"bytes", bytes},
          {"tensor", text_or_null(finding.tensor)},
          {"box", box},
          {"found", text_or_null(finding.found)},
          {"expected", text_or_null(finding.expected)},
          {"next_step", text_or_null(finding.next_step)}};
}

Json json_of(std::span<const Finding> findings) {
  Json all = Json::array();
  for (const Finding& finding : findings) all.push_back(json_of(finding));
  return all;
}

}  // namespace remesh
