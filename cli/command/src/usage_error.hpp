#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace remesh {

/// The verb that was named on the command line; `program` itself where none was.
const CLI::App& chosen_verb(const CLI::App& program);

/// What to tell a user whose command line was refused: what is wrong, what was probably meant, and
/// where the options are listed.
std::string usage_message(const CLI::App& program, const CLI::ParseError& error);

}  // namespace remesh
