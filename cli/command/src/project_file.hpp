#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ignores.hpp"

namespace remesh {

/// What a repository says once for all its checks: `remesh.toml`. cli/README.md describes it.
struct ProjectFile {
  std::string fail_on;  ///< "error", "warn"; empty where it does not say
  std::string level;    ///< likewise
  std::vector<IgnoreRule> ignores;
};

/// Reads TOML; `where` names the text in errors and origins.
/// Throws Error(invalid_argument) with line and column for a text that is no TOML, an unknown key
/// (with the one that was meant), a key that is missing, a value of another kind, and an id that
/// checked_id() refuses.
ProjectFile parse_project_file(std::string_view toml, std::string_view where);

}  // namespace remesh
