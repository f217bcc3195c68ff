#pragma once

#include <vector>

#include "remesh/verify/verify.hpp"

namespace remesh::detail {

/// Has `viewer` look at each file that libhdf5 can read, several at a time, and adds to `findings`
/// where it sees anything but what the file's index says (RM211, RM606, RM607). A viewer that fails
/// is a finding, too. Returns the number of files looked at.
std::int64_t check_hdf5_views(const JudgeContext& context, const Hdf5Viewer& viewer,
                              const Reader& reader, std::vector<Finding>& findings);

}  // namespace remesh::detail
