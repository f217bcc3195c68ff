#pragma once

#include <string>
#include <vector>

#include "json_parts.hpp"
#include "remesh/schema/finding.hpp"
#include "remesh/store/reader.hpp"
#include "session.hpp"

namespace remesh {

/// A checkpoint that was opened, and how much of it is wanted.
struct Inspected {
  std::string path;  ///< as it was given
  const Reader& reader;
  const std::vector<Finding>& findings;
  /// The tensors to list one by one, as numbers in the catalog.
  std::vector<std::size_t> listed;
};

void print_inspected(const Inspected& inspected, Output& out);
Json inspected_json(const Inspected& inspected);

/// Lists the checkpoints that lie in `directory`. Returns false, having printed nothing, if there
/// are none.
bool list_checkpoints(const std::string& directory, Session& session);

}  // namespace remesh
