#pragma once

#include <string>

namespace remesh {

/// Throws the Error(io) that `error`, an errno, stands for where the system refused to write: RM702
/// where there is no space, RM706 where it is not permitted, otherwise RM703. `attempt`: "write
/// 'report.xml'", for the error.
[[noreturn]] void fail_to_write(const std::string& attempt, int error);

}  // namespace remesh
