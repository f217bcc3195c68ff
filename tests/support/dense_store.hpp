#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "arbitrary.hpp"
#include "numbered_tensor.hpp"
#include "remesh/store/memory_store.hpp"

/// @file
/// Checkpoints in memory of tensors with given bytes, in any layout.

namespace remesh::test {

/// A whole tensor, packed.
struct Dense {
  TensorDesc desc;
  std::vector<std::byte> bytes;
};

/// Elements of any width.
inline std::uint64_t bits_in(const std::byte* bytes, int width, Index place) {
  std::uint64_t word = 0;
  if (width % 8 == 0) {
    std::memcpy(&word, bytes + place * (width / 8), static_cast<std::size_t>(width / 8));
    return word;
  }
  for (int bit = 0; bit < width; ++bit) {
    const auto at = static_cast<std::size_t>(place * width + bit);
    const std::uint64_t one = std::to_integer<std::uint64_t>(bytes[at / 8]) >> (at % 8) & 1U;
    word |= one << static_cast<unsigned>(bit);
  }
  return word;
}

inline void put_bits_in(std::byte* bytes, int width, Index place, std::uint64_t word) {
  if (width % 8 == 0) {
    std::memcpy(bytes + place * (width / 8), &word, static_cast<std::size_t>(width / 8));
    return;
  }
  for (int bit = 0; bit < width; ++bit) {
    const auto at = static_cast<std::size_t>(place * width + bit);
    const auto mask = static_cast<std::byte>(1U << (at % 8));
    bytes[at / 8] &= ~mask;
    if ((word >> static_cast<unsigned>(bit) & 1U) != 0) bytes[at / 8] |= mask;
  }
}

/// The bits of one element, by its place in row-major order.
inline std::uint64_t bits_of(const Dense& tensor, Index place) {
  return bits_in(tensor.bytes.data(), bits(tensor.desc.dtype), place);
}

inline void put_bits(Dense& tensor, Index place, std::uint64_t word) {
  put_bits_in(tensor.bytes.data(), bits(tensor.desc.dtype), place, word);
}

/// On one rank, or as `layouts` draws it.
inline std::unique_ptr<MemoryStore> stored(const std::vector<Dense>& tensors,
                                           Arbitrary* layouts = nullptr) {
  Catalog catalog;
  catalog.format = "remesh";
  for (const Dense& tensor : tensors) catalog.tensors.push_back(tensor.desc);
  catalog.layout = layouts != nullptr
                       ? layouts->layout(catalog.tensors)
                       : Layout(Mesh({{"tp", 1}}), {{}}, std::vector<Placed>(tensors.size()), {});
  auto store = std::make_unique<MemoryStore>(std::move(catalog));
  for (const Extent& extent : store->extents().extents()) {
    const Dense& tensor = tensors[extent.tensor];
    std::byte* const into = store->bytes(extent.rank).data() + extent.offset_bytes;
    const int width = bits(tensor.desc.dtype);
    Index next = 0;
    for_each_element(tensor.desc.extent, extent.box, [&](Index place) {
      put_bits_in(into, width, next++, bits_of(tensor, place));
    });
  }
  return store;
}

}  // namespace remesh::test
