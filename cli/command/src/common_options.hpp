#pragma once

#include <string>
#include <vector>

#include "machine.hpp"
#include "output.hpp"

/// @file
/// Options that mean the same in every command that takes them.

namespace CLI {
class App;
}  // namespace CLI

namespace remesh {

/// --json, -q, -v, --color.
void add_talk_options(CLI::App& verb, TalkOptions& talk);

/// -j/--threads, --memory, --progress.
void add_work_options(CLI::App& verb, WorkOptions& work);

/// --from F.
void add_from_option(CLI::App& verb, std::string& from);

/// Checks what was given for a format flag ("--to", "--from"). Empty is fine.
/// Throws Error(invalid_argument) for a mesh ("`--to` takes a format; for a mesh say `--mesh
/// tp=4`") and for a word that is no format, and Error(unsupported) for a format that this build
/// lacks.
void check_format(const std::string& flag, const std::string& value);

/// Every format that has a name, known to this build or not.
const std::vector<std::string>& all_format_names();

}  // namespace remesh
