#pragma once

#include <span>
#include <vector>

#include "numbers.hpp"
#include "remesh/verify/report.hpp"

namespace remesh::detail {

/// What was counted, as a report has it: of tensors whose dtype is counted and of whose bytes
/// `findings` say nothing.
std::vector<TensorNumbers> tensor_numbers(const Reader& reader, const Numbers& numbers,
                                          std::span<const Finding> findings);

}  // namespace remesh::detail
