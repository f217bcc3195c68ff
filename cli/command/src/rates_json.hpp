#pragma once

#include <string>

#include "json_parts.hpp"
#include "remesh/execute/machine_rates.hpp"
#include "remesh/store/file_system.hpp"

namespace remesh {

/// The document of `remesh bench io`.
Json json_of(const MachineRates& rates, const std::string& path);

/// The inverse. Throws Error(invalid_argument), which names the file, for anything that is no such
/// document, or has a number that is not positive; and as read_text does.
MachineRates read_rates(const FileSystem& files, const std::string& path);

}  // namespace remesh
