#pragma once

#include <concepts>
#include <optional>

/// @file
/// Arithmetic on sizes that come from a file. It never wraps: it has an answer or none.

namespace remesh {

template <std::integral T>
std::optional<T> checked_add(T a, T b) noexcept {
  T sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

template <std::integral T>
std::optional<T> checked_multiply(T a, T b) noexcept {
  T product;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

}  // namespace remesh
