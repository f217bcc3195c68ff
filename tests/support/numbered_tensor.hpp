#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "remesh/schema/tensor.hpp"

/// @file
/// Tensors whose every element is a function of its name and its place, so that any box of any
/// tensor can be made and checked alone. Shares no code with what moves boxes.

namespace remesh::test {

/// A tensor's elements as numbers. Those of one whose name ends in ".few" have few values, so that
/// its bytes can be compressed.
class Numbers {
 public:
  explicit Numbers(const TensorDesc& tensor)
      : bits_(bits(tensor.dtype)), few_(tensor.name.ends_with(".few")), dtype_(tensor.dtype) {
    for (const char letter : tensor.name) {  // FNV-1a
      seed_ = (seed_ ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
    }
  }

  /// The bits of one element, by its place among all elements in row-major order.
  std::uint64_t at(Index place) const noexcept {
    std::uint64_t mixed = seed_ + static_cast<std::uint64_t>(place) * 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;  // splitmix64
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    mixed ^= mixed >> 31;
    if (few_) mixed &= 0x0301'0301'0301'0301;
    if (dtype_ == DType::boolean) return mixed & 1;
    return bits_ == 64 ? mixed : mixed & ((std::uint64_t{1} << bits_) - 1);
  }

 private:
  int bits_;
  bool few_;
  DType dtype_;
  std::uint64_t seed_ = 0xcbf29ce484222325;
};

/// Calls `visit` with the place in the tensor of each element of `box`, in order.
inline void for_each_element(const Box& extent, const Box& box,
                             const std::function<void(Index)>& visit) {
  if (box.empty()) return;
  std::array<Index, max_ndim> at{};
  for (int dim = 0; dim < box.ndim(); ++dim) at[static_cast<std::size_t>(dim)] = box[dim].begin;
  while (true) {
    Index place = 0;
    for (int dim = 0; dim < box.ndim(); ++dim) {
      place = place * extent[dim].size() + at[static_cast<std::size_t>(dim)];
    }
    visit(place);
    int dim = box.ndim() - 1;
    for (; dim >= 0; --dim) {
      Index& index = at[static_cast<std::size_t>(dim)];
      if (++index < box[dim].end) break;
      index = box[dim].begin;
    }
    if (dim < 0) return;
  }
}

/// The packed bytes of a box; elements narrower than a byte lie low bits first.
inline std::vector<std::byte> numbered(const TensorDesc& tensor, const Box& box) {
  const Numbers numbers(tensor);
  const int width = bits(tensor.dtype);
  std::vector<std::byte> packed(static_cast<std::size_t>(num_bytes(tensor.dtype, box)));
  std::size_t next = 0;       // the byte to be written
  std::uint64_t waiting = 0;  // bits that are no whole byte yet
  int num_waiting = 0;
  for_each_element(tensor.extent, box, [&](Index place) {
    std::uint64_t value = numbers.at(place);
    for (int left = width; left > 0; left -= 8, value >>= 8) {
      waiting |= (value & 0xff) << num_waiting;
      num_waiting += std::min(left, 8);
      if (num_waiting < 8) continue;
      packed[next++] = static_cast<std::byte>(waiting & 0xff);
      waiting >>= 8;
      num_waiting -= 8;
    }
  });
  return packed;
}

inline std::vector<std::byte> numbered(const TensorDesc& tensor) {
  return numbered(tensor, tensor.extent);
}

/// Empty if the bytes are those of the box; otherwise what is wrong with them.
inline std::string what_differs(const TensorDesc& tensor, const Box& box,
                                std::span<const std::byte> bytes) {
  const std::vector<std::byte> expected = numbered(tensor, box);
  const std::string where = to_string(tensor) + ", box " + to_string(box) + ": ";
  if (bytes.size() != expected.size()) {
    return where + std::to_string(bytes.size()) + " bytes, expected " +
           std::to_string(expected.size());
  }
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    if (bytes[at] == expected[at]) continue;
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "packed byte %zu is %02x, expected %02x", at,
                  std::to_integer<unsigned>(bytes[at]), std::to_integer<unsigned>(expected[at]));
    return where + text.data();
  }
  return {};
}

}  // namespace remesh::test
