#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "faulty_reader.hpp"
#include "remesh/store/writer.hpp"

namespace remesh::test {

/// A Writer that makes one kind of mistake. Taps hear what was truly written, at its true place.
class FaultyWriter final : public Writer {
 public:
  /// Faults of one call happen in call `at_call` of write(), counted from 0.
  FaultyWriter(std::unique_ptr<Writer> inner, Fault fault, std::int64_t at_call = 0)
      : inner_(std::move(inner)), fault_(fault), at_call_(at_call) {}

  const Catalog& catalog() const noexcept override { return inner_->catalog(); }
  const ExtentMap& extents() const noexcept override { return inner_->extents(); }
  ExtentMap extents_on_medium() const override { return inner_->extents_on_medium(); }

  void write(std::size_t tensor, const Box& box, std::span<const std::byte> from,
             const Tap& tap) override {
    const bool now = calls_++ == at_call_;
    if (fault_ == Fault::off_by_one_row) return write_moved(tensor, box, from, tap);
    if (!now || from.empty()) return inner_->write(tensor, box, from, tap);
    struck_ = true;
    if (fault_ == Fault::skipped) return;
    std::vector<std::byte> flipped(from.begin(), from.end());
    flipped[flipped.size() / 2] ^= std::byte{0x10};
    inner_->write(tensor, box, flipped, tap);
  }

  void seal(std::span<const Digest> digests, std::span<const Digest> block_crcs) override {
    inner_->seal(digests, block_crcs);
  }
  void forget_caches() override { inner_->forget_caches(); }
  std::unique_ptr<Reader> reopen() const override { return inner_->reopen(); }
  void certify(const std::string& text) override { inner_->certify(text); }
  std::optional<Digest> manifest_digest() const override { return inner_->manifest_digest(); }
  bool publish() override { return inner_->publish(); }

  /// Whether the mistake was made.
  bool struck() const noexcept { return struck_; }
  std::int64_t calls() const noexcept { return calls_; }

 private:
  // Within the piece, so that what is written still lies together there.
  void write_moved(std::size_t tensor, const Box& box, std::span<const std::byte> from,
                   const Tap& tap) {
    const TensorDesc& desc = catalog().tensors[tensor];
    const std::vector<Box> moved = moved_on(piece_of(tensor, box), box);
    if (moved.empty() || bits(desc.dtype) % 8 != 0) return inner_->write(tensor, box, from, tap);
    struck_ = true;
    for (const Box& rows : moved) {
      const auto bytes = static_cast<std::size_t>(num_bytes(desc.dtype, rows));
      inner_->write(tensor, rows, from.first(bytes), tap);
      from = from.subspan(bytes);
    }
  }

  Box piece_of(std::size_t tensor, const Box& box) const {
    for (const std::uint32_t number : extents().of(tensor)) {
      const Box& piece = extents().extents()[number].box;
      if (contains(piece, box)) return piece;
    }
    return {};
  }

  std::unique_ptr<Writer> inner_;
  const Fault fault_;
  const std::int64_t at_call_;
  std::atomic<std::int64_t> calls_{0};
  std::atomic<bool> struck_{false};
};

}  // namespace remesh::test
