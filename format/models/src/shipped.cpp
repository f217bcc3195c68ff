#include "shipped.hpp"

#include <string>
#include <vector>

#include "remesh/models/model_map.hpp"

namespace remesh {
namespace {

const std::vector<ModelMap>& shipped_maps() {
  static const std::vector<ModelMap> maps = [] {
    std::vector<ModelMap> parsed;
    for (const detail::ShippedText& text : detail::shipped_texts()) {
      parsed.push_back(ModelMap::parse(text.toml, text.file_name));
    }
    return parsed;
  }();
  return maps;
}

}  // namespace

const ModelMap* shipped_map(std::string_view config_json) {
  for (const ModelMap& map : shipped_maps()) {
    if (map.fits(config_json)) return &map;
  }
  return nullptr;
}

std::vector<std::string> shipped_map_names() {
  std::vector<std::string> names;
  for (const ModelMap& map : shipped_maps()) names.push_back(map.name());
  return names;
}

}  // namespace remesh
