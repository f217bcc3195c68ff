#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

/// @file
/// Fixed-width little-endian integers in bytes. Every machine that remesh builds for stores them
/// so.

namespace remesh::native {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

/// Precondition: the bytes are there.
template <std::integral T>
T load(std::span<const std::byte> bytes, std::size_t offset) noexcept {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// Precondition: the bytes are there.
template <std::integral T>
void store(std::span<std::byte> bytes, std::size_t offset, T value) noexcept {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

template <std::integral T>
void append(std::vector<std::byte>& bytes, T value) {
  const auto* const first = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), first, first + sizeof value);
}

}  // namespace remesh::native
