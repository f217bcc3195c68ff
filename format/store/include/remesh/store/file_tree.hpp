#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "remesh/core/progress.hpp"
#include "remesh/core/thread_pool.hpp"
#include "remesh/store/file_system.hpp"

/// @file
/// The hash of a file that holds against intent. A CRC-64 tells accidents apart and no more: who
/// wants to can change a file so that its CRC stays the same. To make another file with the same
/// tree hash is beyond anybody's means. Alone it proves nothing, since it can be replaced together
/// with the file: it has to stand in something that is signed (signature.hpp).
///
/// The file is cut into *leaves* of 1 MiB, the last one shorter; an empty file has none. Numbers
/// are 64-bit little-endian.
///
///     leaf(i) = BLAKE2b-256(00, i, bytes of leaf i)
///     root    = BLAKE2b-256(01, size of the file in bytes, leaf(0), leaf(1), ...)
///
/// So leaves can be hashed by many threads and in any order. The first byte keeps a leaf from being
/// taken for a root, the number keeps leaves in their places, and the size says how many there are.

namespace remesh {

/// A BLAKE2b-256 value of the tree above.
struct TreeHash {
  std::array<std::byte, 32> bytes{};

  friend auto operator<=>(const TreeHash&, const TreeHash&) = default;
};

/// 64 lower-case hexadecimal digits.
std::string to_string(const TreeHash& hash);

/// The inverse of to_string; nothing for any other text.
std::optional<TreeHash> parse_tree_hash(std::string_view text) noexcept;

namespace file_tree {

inline constexpr std::int64_t leaf_bytes = std::int64_t{1} << 20;

/// Precondition: file_bytes >= 0.
std::int64_t num_leaves(std::int64_t file_bytes) noexcept;

/// The hash of leaf `index`. Any thread may call it. Precondition: index >= 0, and 1 to leaf_bytes
/// bytes, which are all that the leaf has.
TreeHash leaf(std::int64_t index, std::span<const std::byte> bytes);

/// The hash of the file, from those of all its leaves in order. Throws Error(internal) if their
/// count does not fit the size.
TreeHash root(std::int64_t file_bytes, std::span<const TreeHash> leaves);

}  // namespace file_tree

/// The tree hash of an open file, which nobody changes meanwhile. Holds one leaf for each thread of
/// the pool, and 32 bytes for each leaf. Throws as File::read_at and `stop`, if there is one, do.
TreeHash tree_of(const File& file, ThreadPool& pool, const StopFlag* stop = nullptr);

}  // namespace remesh
