#pragma once

#include <vector>

#include "number_checks.hpp"
#include "remesh/verify/report.hpp"

namespace remesh::detail {

/// What was counted, as a report has it: of tensors that are sound and whose dtype is counted.
std::vector<TensorNumbers> tensor_numbers(const ReadNumbers& read);

}  // namespace remesh::detail
