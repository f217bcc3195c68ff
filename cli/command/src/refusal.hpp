#pragma once

#include <optional>

#include "remesh/core/error.hpp"
#include "remesh/schema/finding.hpp"

namespace remesh {

/// What a reader refuses, a judge reports: wrong bytes are the answer, not a failure to answer. The
/// finding that stands for such an error (RM202 where it names none); nothing for errors that leave
/// the question open, as those of storage and memory do.
std::optional<Finding> finding_of(const Error& error);

}  // namespace remesh
