#pragma once

#include <span>
#include <string_view>

#include <nlohmann/json.hpp>

#include "remesh/schema/box.hpp"
#include "remesh/schema/finding.hpp"
#include "remesh/schema/mesh.hpp"
#include "remesh/schema/tensor.hpp"

/// @file
/// What several commands put into their documents, in one shape. Keys are always there; what is not
/// known is null. The schema files in cli/command/schema/ say the same.

namespace remesh {

using Json = nlohmann::ordered_json;

/// A new document: {"schema": "remesh.<verb>/1", "tool": "remesh 0.1.0"}.
Json new_document(std::string_view verb);

/// The text, or null where it is empty.
Json text_or_null(std::string_view text);

Json json_of(const Mesh& mesh);
Json json_of(const Finding& finding);
Json json_of(std::span<const Finding> findings);

/// The sizes along each dim.
Json shape_json(const Box& extent);

}  // namespace remesh
