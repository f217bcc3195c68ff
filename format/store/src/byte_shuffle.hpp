#pragma once

#include <cstddef>
#include <span>

/// @file
/// The order of bytes that HDF5's shuffle filter gives: byte 0 of every element, then byte 1 of
/// every element, and so on. What is no whole element stays at the end as it is.
///
/// The exponents of neighbouring weights are alike and their low bits are not: side by side, the
/// alike compress.

namespace remesh::native {

/// Preconditions: element_bytes >= 1, and two ranges of one length that do not overlap.
void shuffle(std::span<const std::byte> plain, std::size_t element_bytes,
             std::span<std::byte> shuffled) noexcept;

/// The inverse of shuffle(), with the same preconditions.
void unshuffle(std::span<const std::byte> shuffled, std::size_t element_bytes,
               std::span<std::byte> plain) noexcept;

}  // namespace remesh::native
