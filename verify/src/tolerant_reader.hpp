#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "remesh/store/reader.hpp"

namespace remesh::detail {

/// A Reader for judges: where a file ends too early, it tells `findings` once for that file (unless
/// it is in `known`), and gives zeros, so that everything else is still judged. read_bytes() alone
/// is tolerant; both arguments outlive the reader.
class TolerantReader final : public Reader {
 public:
  TolerantReader(const Reader& inner, std::set<std::string> known, Findings& findings)
      : inner_(inner), known_(std::move(known)), findings_(findings) {}

  const Catalog& catalog() const noexcept override { return inner_.catalog(); }
  const ExtentMap& extents() const noexcept override { return inner_.extents(); }
  void read(std::size_t tensor, const Box& box, std::span<std::byte> into,
            const Tap& tap) const override {
    inner_.read(tensor, box, into, tap);
  }
  void read_bytes(std::uint32_t file, std::int64_t offset,
                  std::span<std::byte> into) const override {
    try_read(file, offset, into);
  }
  /// The same, and whether the bytes were there.
  bool try_read(std::uint32_t file, std::int64_t offset, std::span<std::byte> into) const;
  /// Whether a read that began there found that not all of it was there.
  bool was_missing(std::uint32_t file, std::int64_t offset) const;

  void unpack(const Extent& extent, std::int64_t k, std::span<const std::byte> stored,
              std::span<std::byte> into) const override {
    inner_.unpack(extent, k, stored, into);
  }

  std::vector<std::byte> side(const SideFile& side) const override { return inner_.side(side); }

 private:
  const Reader& inner_;
  mutable std::mutex mutex_;
  mutable std::set<std::string> known_;                               // files whose damage was told
  mutable std::set<std::pair<std::uint32_t, std::int64_t>> missing_;  // reads by file and offset
  Findings& findings_;
};

}  // namespace remesh::detail
