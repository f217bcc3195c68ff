#pragma once

#include <chrono>
#include <string>

#include "failure.hpp"
#include "output.hpp"
#include "remesh/core/progress.hpp"
#include "remesh/store/file_system.hpp"

namespace remesh {

/// What a running command may use.
struct Session {
  Output& out;
  FileSystem& files;
  const StopFlag& stop;
  const std::string& verb;  ///< that runs: "verify"
  OnFailure& on_failure;    ///< called, after all else, with what ends the command
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();

  /// Since the command began.
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
};

}  // namespace remesh
