#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "remesh/verify/verify.hpp"

namespace remesh {

/// What was judged in the search for a whole checkpoint.
struct FirstWhole {
  /// The first candidate that is whole; nothing: none is.
  std::optional<std::size_t> candidate;
  /// Of each candidate that was judged, in their order; the last one is `candidate`'s, if any is.
  std::vector<Report> reports;
  std::vector<bool> refused;  ///< of each of them: it was not opened, or its reader gave up
};

/// Whether a candidate that was judged is whole, by what was found.
using IsWhole = std::function<bool(std::size_t candidate, const Report& report)>;

bool has_no_error(std::size_t candidate, const Report& report);

/// Judges one candidate after the other, and none behind the first that is whole: of which
/// `is_whole` says so. What cannot even be opened is not whole, and `is_whole` is not asked: the
/// reason is the finding of its report.
/// Throws where the question could not be answered: Error(io), Error(out_of_memory),
/// Error(stopped), as verify does.
FirstWhole first_whole(const JudgeContext& context, std::size_t candidates,
                       const std::function<Suspect(std::size_t candidate)>& suspect, Level level,
                       const IsWhole& is_whole = has_no_error);

}  // namespace remesh
