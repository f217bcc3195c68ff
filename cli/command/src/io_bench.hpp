#pragma once

#include <cstdint>

#include "remesh/execute/context.hpp"
#include "remesh/execute/machine_rates.hpp"
#include "remesh/store/file_system.hpp"

namespace remesh {

/// Measures what `directory`'s storage and the context's threads can do with `sample_bytes`: each
/// stage three times, of which the median counts. Works in a new directory beneath, and removes it.
/// Throws Error(io, RM702) if two samples have no room there, Error(stopped), Error(out_of_memory,
/// RM705) if the buffers do not fit, and as the file system does.
MachineRates measure_rates(FileSystem& files, const FileSystem::Path& directory,
                           std::int64_t sample_bytes, const Context& context);

}  // namespace remesh
