#pragma once

#include <string>
#include <vector>

#include "remesh/store/reader.hpp"
#include "remesh/verify/verify.hpp"

namespace remesh::detail {

/// "blake2b:" and 64 hexadecimal digits for each tensor, in catalog order: of its logical bytes,
/// row after row, from whichever pieces they lie in. One thread hashes one tensor. What is recorded
/// of a tensor is checked on the way. Throws as tensor_digests() does.
std::vector<std::string> blake2b_digests(const JudgeContext& context, const Reader& reader);

}  // namespace remesh::detail
