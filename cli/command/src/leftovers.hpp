#pragma once

#include <string>

#include "remesh/store/file_system.hpp"
#include "session.hpp"

/// @file
/// What jobs that did not finish leave beside a destination, and what is said of it.

namespace remesh {

/// A job, as its temporary directory is named after it.
struct JobPlace {
  FileSystem::Path destination;
  std::string job_id;
};

/// With `discard`: removes what jobs of the same destination but with other options left, unless
/// one of them still runs, and says so. Otherwise says what there is, and how to be rid of it.
void settle_leftovers(const JobPlace& place, bool discard, Session& session);

/// For a job that did not end well and is over: a line on standard error about what it keeps, if it
/// does; or that it left nothing, if a signal ended it.
void tell_what_is_left(const JobPlace& place, Session& session);

}  // namespace remesh
