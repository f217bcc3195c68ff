#pragma once

#include <string>
#include <vector>

namespace remesh {

/// Of a command line that cannot be meant: removes the files that it names as reports, so that the
/// verdict of an earlier run does not stand for one that there is not. Only what begins as a report
/// that remesh wrote, and lies in nothing else that the command line names, is removed. Throws
/// Error(io).
void remove_stale_reports(const std::vector<std::string>& arguments);

}  // namespace remesh
