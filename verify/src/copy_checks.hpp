#pragma once

#include <cstdint>
#include <vector>

#include "remesh/store/reader.hpp"
#include "remesh/store/tally.hpp"
#include "remesh/verify/verify.hpp"

namespace remesh::detail {

/// Whether stored copies of some piece may hold different numbers, once all bytes have passed the
/// tally: their recorded CRCs differ, or, where none are recorded, the digests of their tensors.
bool may_differ(const Reader& reader, const Tally& tally);

/// RM401 for copies whose bytes are as recorded and not the same: the first element that differs,
/// with both values (of the first 64 findings), their distance, ranks and files, and how many
/// copies hold what. Reads all copies once more. Throws as sweep() does.
void report_unlike_copies(const JudgeContext& context, const Reader& reader,
                          std::vector<Finding>& findings);

}  // namespace remesh::detail
