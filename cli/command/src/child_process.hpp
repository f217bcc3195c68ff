#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "remesh/core/progress.hpp"
#include "remesh/store/hdf5_view.hpp"

namespace remesh {

/// Runs a program whose end, of whatever kind, is no harm to this one, and gives `sink` what it
/// prints, as it comes. The program gets no input, no terminal and no file of ours, a process group
/// of its own, and an environment from which HDF5 learns of no plug-in. When this returns or
/// throws, it has ended and is reaped.
/// Throws Error(corrupt, RM211) if it does not end by itself with 0 before `deadline` has passed,
/// Error(stopped) soon after a stop was asked for, Error(io) if it cannot be started; what `sink`
/// throws passes through.
void run_child(const std::vector<std::string>& command, std::chrono::milliseconds deadline,
               const StopFlag& stop, const TextSink& sink);

}  // namespace remesh
