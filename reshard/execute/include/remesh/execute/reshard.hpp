#pragma once

#include <string_view>

#include "remesh/execute/transfer.hpp"
#include "remesh/models/model_map.hpp"
#include "remesh/schema/target.hpp"

namespace remesh {

/// The catalog of `source` as `target` says. With `map`, every tensor is placed anew by it;
/// otherwise the source's own placements are kept.
/// Throws as Layout::on, ModelMap::place and sharded do.
Catalog resharded(const Catalog& source, const Target& target, const ModelMap* map,
                  std::string_view config_json);

/// Changes the mesh of a checkpoint: transfer() into a writer that was created for `resharded`.
/// Throws Error(invalid_argument) if the target's tensors are not the source's.
Outcome reshard(Context& context, const Reader& source, Writer& target,
                const TransferOptions& options);

}  // namespace remesh
