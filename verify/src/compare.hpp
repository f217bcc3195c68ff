#pragma once

#include "judge.hpp"

namespace remesh::detail {

/// Compares the tensors of two judged checkpoints: names (RM302, RM310), dtypes and shapes (RM303),
/// digests (RM311, with the first differing element where it can be found, or what rearranged.hpp
/// knows of them).
void compare(const JudgeContext& context, const Judged& left, const Judged& right, Report& report);

/// See tensor_digests().
std::vector<Digest> recomputed_digests(const JudgeContext& context, const Reader& reader);

}  // namespace remesh::detail
