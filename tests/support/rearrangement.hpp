#pragma once

#include <cstddef>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "remesh/schema/finding.hpp"

/// @file
/// Tensors that are rearranged, byte by byte, and what must be found of them.

namespace remesh::test {

using Bytes = std::vector<std::byte>;
using Order = std::vector<std::size_t>;  ///< which of the old ones stands at each place

inline Order counted(std::size_t size) {
  Order order(size);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

inline Order inverse(const Order& order) {
  Order back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) back[order[i]] = i;
  return back;
}

/// Of each head the rows of its two halves by turns.
inline Order interleaved(std::size_t size, std::size_t head) {
  Order order;
  for (std::size_t begin = 0; begin < size; begin += head) {
    for (std::size_t i = 0; i < head / 2; ++i) {
      order.push_back(begin + i);
      order.push_back(begin + head / 2 + i);
    }
  }
  return order;
}

inline Bytes with_rows(const Bytes& old, const Order& order) {
  const std::size_t row = old.size() / order.size();
  Bytes now(old.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::memcpy(now.data() + i * row, old.data() + order[i] * row, row);
  }
  return now;
}

inline Bytes transposed(const Bytes& old, std::size_t rows, std::size_t width) {
  const std::size_t columns = old.size() / width / rows;
  Bytes now(old.size());
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      std::memcpy(now.data() + (c * rows + r) * width, old.data() + (r * columns + c) * width,
                  width);
    }
  }
  return now;
}

inline Bytes with_columns(const Bytes& old, std::size_t rows, std::size_t width,
                          const Order& order) {
  const Bytes turned = with_rows(transposed(old, rows, width), order);
  return transposed(turned, order.size(), width);
}

inline ::testing::Matcher<const Finding&> finds(const std::string& id, const std::string& tensor,
                                                const std::string& name) {
  return ::testing::AllOf(::testing::Field(&Finding::id, id),
                          ::testing::Field(&Finding::tensor, tensor),
                          ::testing::Field(&Finding::found, name),
                          ::testing::Field(&Finding::message, ::testing::HasSubstr(name)));
}

inline ::testing::Matcher<const Finding&> says(const std::string& id, const std::string& words) {
  return ::testing::AllOf(::testing::Field(&Finding::id, id),
                          ::testing::Field(&Finding::message, ::testing::HasSubstr(words)));
}

inline ::testing::Matcher<const Finding&> advises(const std::string& words) {
  return ::testing::Field(&Finding::next_step, ::testing::HasSubstr(words));
}

}  // namespace remesh::test
