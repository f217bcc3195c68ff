#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "remesh/store/reader.hpp"

namespace remesh::test {

/// What a Reader or Writer does wrong.
enum class Fault {
  off_by_one_row,  ///< in each call: takes row r + 1 for row r; the last one is followed by the
                   ///< first
  flipped_byte,    ///< in one call: one bit of the bytes that it hands over
  skipped,         ///< in one call: nothing is done at all
};

/// The rows of dim 0 that `box` has, moved on by one within `whole`: two boxes if that leads past
/// the end, in the order of the rows that they stand for. Empty where there are no two rows.
///
/// Each row of `whole` stands for exactly one other, so that coverage stays exact.
inline std::vector<Box> moved_on(const Box& whole, const Box& box) {
  if (whole.ndim() == 0 || whole[0].size() < 2 || box.empty()) return {};
  Box next = box;
  next[0] = {box[0].begin + 1, std::min(box[0].end + 1, whole[0].end)};
  std::vector<Box> moved;
  if (next[0].size() > 0) moved.push_back(next);
  if (box[0].end == whole[0].end) {
    next[0] = {whole[0].begin, whole[0].begin + 1};
    moved.push_back(next);
  }
  return moved;
}

/// A Reader that makes one kind of mistake. Taps hear what was truly read, from its true place.
class FaultyReader final : public Reader {
 public:
  /// Faults of one call happen in call `at_call` of read(), counted from 0.
  FaultyReader(std::unique_ptr<Reader> inner, Fault fault, std::int64_t at_call = 0)
      : inner_(std::move(inner)), fault_(fault), at_call_(at_call) {}

  const Catalog& catalog() const noexcept override { return inner_->catalog(); }
  const ExtentMap& extents() const noexcept override { return inner_->extents(); }

  void read(std::size_t tensor, const Box& box, std::span<std::byte> into,
            const Tap& tap) const override {
    const bool now = calls_++ == at_call_;
    if (fault_ == Fault::off_by_one_row) return read_moved(tensor, box, into, tap);
    if (fault_ == Fault::skipped && now) {
      struck_ = true;
      return;
    }
    inner_->read(tensor, box, into, tap);
    if (fault_ == Fault::flipped_byte && now && !into.empty()) {
      into[into.size() / 2] ^= std::byte{0x10};
      struck_ = true;
    }
  }

  void read_bytes(std::uint32_t file, std::int64_t offset,
                  std::span<std::byte> into) const override {
    inner_->read_bytes(file, offset, into);
  }

  void unpack(const Extent& extent, std::int64_t k, std::span<const std::byte> stored,
              std::span<std::byte> into) const override {
    inner_->unpack(extent, k, stored, into);
  }

  std::vector<std::byte> side(const SideFile& side) const override { return inner_->side(side); }

  /// Whether the mistake was made.
  bool struck() const noexcept { return struck_; }
  std::int64_t calls() const noexcept { return calls_; }

 private:
  void read_moved(std::size_t tensor, const Box& box, std::span<std::byte> into,
                  const Tap& tap) const {
    const TensorDesc& desc = catalog().tensors[tensor];
    const std::vector<Box> moved = moved_on(desc.extent, box);
    if (moved.empty() || bits(desc.dtype) % 8 != 0) return inner_->read(tensor, box, into, tap);
    struck_ = true;
    for (const Box& rows : moved) {
      const auto bytes = static_cast<std::size_t>(num_bytes(desc.dtype, rows));
      inner_->read(tensor, rows, into.first(bytes), tap);
      into = into.subspan(bytes);
    }
  }

  std::unique_ptr<Reader> inner_;
  const Fault fault_;
  const std::int64_t at_call_;
  mutable std::atomic<std::int64_t> calls_{0};
  mutable std::atomic<bool> struck_{false};
};

}  // namespace remesh::test
