#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "remesh/core/digest.hpp"
#include "remesh/schema/runs.hpp"
#include "remesh/store/extents.hpp"

namespace remesh::test {

/// Tally as one would first write it: every run is shifted to its place by itself. Kept to compare
/// the fast one with, for results and for speed. Copy 0 of one thread only.
class PlainTally {
 public:
  PlainTally(std::span<const TensorDesc> tensors, const ExtentMap& extents)
      : tensors_(tensors), extents_(extents), cells_(tensors.size()) {
    for (const Extent& extent : extents.extents()) {
      blocks_.emplace_back(static_cast<std::size_t>(num_blocks(extent)));
    }
  }

  void add(std::uint32_t file, std::int64_t offset, std::span<const std::byte> bytes) {
    for (std::size_t number = 0; number < extents_.extents().size(); ++number) {
      const Extent& extent = extents_.extents()[number];
      if (extent.file != file) continue;
      const std::int64_t begin = std::max(offset, extent.offset_bytes);
      const std::int64_t end =
          std::min(offset + std::ssize(bytes), extent.offset_bytes + extent.length_bytes);
      for (std::int64_t at = begin; at < end;) {
        const std::int64_t in_block = (at - extent.offset_bytes) % ExtentMap::block_bytes;
        const std::int64_t length = std::min(end - at, ExtentMap::block_bytes - in_block);
        add_block_part(
            number, at - extent.offset_bytes,
            bytes.subspan(static_cast<std::size_t>(at - offset), static_cast<std::size_t>(length)));
        at += length;
      }
    }
  }

  Digest digest(std::size_t tensor) const {
    return crc64::finish(cells_[tensor].crc, num_bytes(tensors_[tensor]));
  }

  bool complete(std::size_t tensor) const {
    const std::int64_t total = num_bytes(tensors_[tensor]);
    return cells_[tensor].bytes == total && cells_[tensor].cover == crc64::pure_ones(total);
  }

  Digest block(std::size_t extent, std::int64_t k) const {
    const std::int64_t begin = k * ExtentMap::block_bytes;
    const std::int64_t end =
        std::min(begin + ExtentMap::block_bytes, extents_.extents()[extent].length_bytes);
    return crc64::finish(blocks_[extent][static_cast<std::size_t>(k)], end - begin);
  }

 private:
  struct Cell {
    std::uint64_t crc = 0;
    std::uint64_t cover = 0;
    std::int64_t bytes = 0;
  };

  void add_block_part(std::size_t number, std::int64_t begin, std::span<const std::byte> bytes) {
    const Extent& extent = extents_.extents()[number];
    const TensorDesc& tensor = tensors_[extent.tensor];
    const std::int64_t k = begin / ExtentMap::block_bytes;
    const std::int64_t block_end = std::min((k + 1) * ExtentMap::block_bytes, extent.length_bytes);
    for_each_run(
        byte_view(tensor, extent.box), begin, begin + std::ssize(bytes), [&](const Run& run) {
          const std::uint64_t pure =
              crc64::pure(bytes.subspan(static_cast<std::size_t>(run.packed_bytes - begin),
                                        static_cast<std::size_t>(run.length_bytes)));
          const std::int64_t after = num_bytes(tensor) - run.tensor_bytes - run.length_bytes;
          const std::int64_t after_in_block = block_end - run.packed_bytes - run.length_bytes;
          Cell& cell = cells_[extent.tensor];
          cell.crc ^= crc64::multiply(pure, crc64::power(after));
          cell.cover ^= crc64::multiply(crc64::pure_ones(run.length_bytes), crc64::power(after));
          cell.bytes += run.length_bytes;
          blocks_[number][static_cast<std::size_t>(k)] ^=
              crc64::multiply(pure, crc64::power(after_in_block));
        });
  }

  std::span<const TensorDesc> tensors_;
  const ExtentMap& extents_;
  std::vector<Cell> cells_;
  std::vector<std::vector<std::uint64_t>> blocks_;
};

}  // namespace remesh::test
