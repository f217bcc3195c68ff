#include "remesh/execute/convert.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "remesh/core/error.hpp"

namespace remesh {
namespace {

bool has_rules(const Layout& layout) {
  return std::ranges::any_of(layout.placements(), [](const Placement& placement) {
    return !placement.splits.empty() || !placement.pins.empty() || placement.flat;
  });
}

Layout wanted_layout(const Catalog& source, const Target& target, const ModelMap* map,
                     std::string_view config_json) {
  const Mesh& mesh = target.mesh;
  if (map != nullptr) return map->place(source.tensors, config_json, mesh, target.stages);
  if (has_rules(source.layout)) return source.layout.on(mesh, target.stages);
  for (const char* axis : {"tp", "pp", "ep", "etp"}) {
    if (mesh.size(axis) == 1) continue;
    throw Error(Errc::unsupported,
                fmt::format("cannot place {} tensors on {} {}: {}; say which dims are split with "
                            "`--rules FILE`",
                            source.tensors.size(), axis, mesh.size(axis),
                            config_json.empty()
                                ? "there is no config.json, which says what model it is (name the "
                                  "directory, if this is a file of one)"
                                : "no model map that ships fits this model"));
  }
  return Layout::replicated(mesh, source.tensors.size());
}

// The same catalog with its tensors in another order.
Catalog reordered(const Catalog& catalog, const std::vector<std::size_t>& order) {
  Catalog result = catalog;
  std::vector<Placed> placed;
  for (std::size_t at = 0; at < order.size(); ++at) {
    const std::size_t from = order[at];
    result.tensors[at] = catalog.tensors[from];
    placed.push_back(catalog.layout.placed()[from]);
    if (!catalog.digests.empty()) result.digests[at] = catalog.digests[from];
    if (!catalog.packaging.empty()) result.packaging.file_of[at] = catalog.packaging.file_of[from];
  }
  const auto placements = catalog.layout.placements();
  result.layout = Layout(catalog.layout.mesh(), {placements.begin(), placements.end()},
                         std::move(placed), catalog.layout.stages());
  return result;
}

}  // namespace

Catalog converted(const Catalog& source, std::string_view to, const Target& target,
                  const ModelMap* map, std::string_view config_json) {
  Catalog wanted = source;
  wanted.format = to;
  wanted.save_id.clear();
  if (to == "hf") {
    wanted.layout = Layout::replicated(Mesh{}, source.tensors.size());
    if (map != nullptr) wanted = reordered(wanted, map->state_dict_order(source.tensors));
  } else {
    wanted.layout = wanted_layout(source, target, map, config_json);
    if (target.sharding) wanted.layout = sharded(wanted.layout, source.tensors, *target.sharding);
  }
  return wanted;
}

Outcome convert(Context& context, const Reader& source, Writer& target,
                const TransferOptions& options) {
  return transfer(context, source, target, options);
}

}  // namespace remesh
