#pragma once

#include <string_view>

#include "remesh/execute/transfer.hpp"
#include "remesh/models/model_map.hpp"
#include "remesh/schema/target.hpp"

namespace remesh {

/// The catalog that `source` has in the format `to`, as `target` says. For "hf" that is one rank.
/// With `map`, every tensor is placed anew by it; without, a source that has placements keeps them.
/// Where neither has rules, everything is replicated, and a mesh with tp or pp above 1 is
/// Error(unsupported), which says `--rules FILE`.
Catalog converted(const Catalog& source, std::string_view to, const Target& target,
                  const ModelMap* map, std::string_view config_json);

/// Changes the framework, and the mesh too if the target has another: transfer() into a writer that
/// was created for `converted`.
Outcome convert(Context& context, const Reader& source, Writer& target,
                const TransferOptions& options);

}  // namespace remesh
