#pragma once

#include "remesh/core/progress.hpp"

namespace remesh {

/// From now on the first SIGINT or SIGTERM asks `stop` for a clean stop; a second one of the same
/// kind ends the process at once. A broken pipe is an error of the write, not a signal.
/// `stop` must live until the process ends. Called once, by main.
void stop_on_signals(StopFlag& stop);

}  // namespace remesh
