#pragma once

#include <functional>
#include <string>

#include "exit_code.hpp"

namespace remesh {

/// How a command ended that did not come to its answer.
struct Failure {
  int exit = exit_code::bug;
  std::string code;  ///< as in Errc's names
  std::string id;    ///< of the page that explains it, or empty
  std::string message;
};

/// Hears of a failure before it is told.
using OnFailure = std::function<void(const Failure&)>;

/// A judgement that there is not: what was to be judged, and why it was not.
struct NoVerdict {
  std::string verb;  ///< "verify"
  std::string path;  ///< what was to be judged, as it was given
  double seconds = 0;
  Failure failure;
};

}  // namespace remesh
