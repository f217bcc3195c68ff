#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "remesh/verify/verify.hpp"

namespace remesh {

/// What was judged in the search for a whole checkpoint.
struct FirstWhole {
  /// The first candidate without an error; nothing: none is whole.
  std::optional<std::size_t> candidate;
  /// Of each candidate that was judged, in their order; the last one is `candidate`'s, if any is.
  std::vector<Report> reports;
};

/// Judges one candidate after the other, and none behind the first that is whole. What cannot even
/// be opened is not whole: the reason is the finding of its report.
/// Throws where the question could not be answered: Error(io), Error(out_of_memory),
/// Error(stopped), as verify does.
FirstWhole first_whole(const JudgeContext& context, std::size_t candidates,
                       const std::function<Suspect(std::size_t candidate)>& suspect, Level level);

}  // namespace remesh
