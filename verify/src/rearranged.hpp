#pragma once

#include <span>
#include <vector>

#include "judge.hpp"
#include "renumbered.hpp"

namespace remesh::detail {

/// Looks among tensors of one name that differ for those that are rearranged, not damaged: under
/// other numbers or names (RM524), with rows or columns in another order (RM521), with queries,
/// keys and values grouped otherwise (RM522), transposed (RM523), times a power of two (RM532); and
/// for those of another dtype or shape says what they have in common (RM303). No tensor is in two
/// explanations, and those of which nothing is known are in none. A
/// finding stands in for what compare() would say of the same tensors otherwise.
///
/// `read`: look at the bytes too, once more, and not at digests alone. What is too large for the
/// budget, or cannot be read, is not explained. Throws Error(stopped).
/// Precondition: both sides have readers and digests.
std::vector<Explanation> explain_differences(const JudgeContext& context, const Judged& left,
                                             const Judged& right, std::span<const Pair> pairs,
                                             bool read);

}  // namespace remesh::detail
