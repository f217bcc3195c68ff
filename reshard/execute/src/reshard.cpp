#include "remesh/execute/reshard.hpp"

namespace remesh {

Catalog resharded(const Catalog& source, const Target& target, const ModelMap* map,
                  std::string_view config_json) {
  Catalog wanted = source;
  wanted.layout = map != nullptr
                      ? map->place(source.tensors, config_json, target.mesh, target.stages)
                      : source.layout.on(target.mesh, target.stages);
  if (target.sharding) wanted.layout = sharded(wanted.layout, source.tensors, *target.sharding);
  wanted.save_id.clear();
  return wanted;
}

Outcome reshard(Context& context, const Reader& source, Writer& target,
                const TransferOptions& options) {
  return transfer(context, source, target, options);
}

}  // namespace remesh
