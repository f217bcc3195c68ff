#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "remesh/schema/finding.hpp"
#include "remesh/store/extents.hpp"

/// @file
/// What a seal is made of: the facts that its writer and its reader share. SEAL.md is the law.

namespace remesh::native {

inline constexpr std::string_view seal_format = "remesh-seal";
inline constexpr std::int64_t seal_version = 1;

/// The most bytes of a seal that are read.
inline constexpr std::int64_t most_seal_bytes = std::int64_t{512} << 20;

/// The hexadecimal digits of one block's CRC.
inline constexpr std::size_t block_digits = 16;

/// Of each file, the bytes that no extent has. Precondition: extents lie in their files and do not
/// overlap.
std::vector<std::vector<ByteRange>> rests_of(const ExtentMap& extents);

}  // namespace remesh::native
