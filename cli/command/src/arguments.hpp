#pragma once

#include <string>
#include <vector>

namespace remesh {

/// Spells out what users may leave out: `remesh PATH` is `remesh inspect PATH`, `remesh help VERB`
/// is `remesh VERB --help`, and options before the verb go behind it.
///
/// Throws Error(invalid_argument) if the first word is neither a verb nor something that lies on
/// disk; it names the verb that was probably meant.
std::vector<std::string> spelled_out(std::vector<std::string> arguments,
                                     const std::vector<std::string>& verbs);

}  // namespace remesh
