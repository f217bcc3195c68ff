#include "remesh/store/tally.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <tuple>

#include "remesh/schema/runs.hpp"
#include "remesh/store/chunks.hpp"
#include "remesh/store/extent_runs.hpp"

namespace remesh {
namespace {

std::size_t as_size(std::int64_t value) { return static_cast<std::size_t>(value); }

// The last few values of a function of a byte count that costs some multiplications: the rows of a
// box have one length and few distances.
template <std::uint64_t (*function)(std::int64_t) noexcept>
class Recent {
 public:
  std::uint64_t of(std::int64_t count) noexcept {
    for (const Known& each : known_) {
      if (each.count == count) return each.value;
    }
    Known& oldest = known_[next_];
    next_ = (next_ + 1) % known_.size();
    oldest = {count, function(count)};
    return oldest.value;
  }

 private:
  struct Known {
    std::int64_t count = -1;
    std::uint64_t value = 0;
  };

  std::array<Known, 8> known_{};
  std::size_t next_ = 0;
};

// Kept from call to call, for those who add one row at a time.
constinit thread_local Recent<crc64::power> powers;
constinit thread_local Recent<crc64::pure_ones> ones;

std::uint64_t append_zeros(std::uint64_t sum, std::int64_t bytes) noexcept {
  return sum == 0 ? 0 : crc64::multiply(sum, powers.of(bytes));
}

// What some bytes of one extent come to in its tensor. Runs come in ascending order and are added
// up by Horner's rule: what is there is shifted by the distance from the end of one run to the end
// of the next, which is the same for all rows, and only the whole by what follows the last one.
class TensorSum {
 public:
  // Hashes each run of the bytes at offset `begin` of the packed box, once. Returns the pure CRC of
  // the bytes as they lie there.
  std::uint64_t add_runs(const ByteView& view, std::int64_t begin,
                         std::span<const std::byte> bytes) {
    std::uint64_t packed = 0;
    for_each_run(view, begin, begin + std::ssize(bytes), [&](const Run& run) {
      const std::uint64_t pure =
          crc64::pure(bytes.subspan(as_size(run.packed_bytes - begin), as_size(run.length_bytes)));
      const std::int64_t end = run.tensor_bytes + run.length_bytes;
      crc_ = append_zeros(crc_, end - end_) ^ pure;
      cover_ = append_zeros(cover_, end - end_) ^ ones.of(run.length_bytes);
      packed = append_zeros(packed, run.length_bytes) ^ pure;
      end_ = end;
    });
    return packed;
  }

  struct Shifted {
    std::uint64_t crc;
    std::uint64_t cover;
  };
  Shifted within(std::int64_t total_bytes) const noexcept {
    const std::uint64_t shift = crc64::power(total_bytes - end_);
    return {crc64::multiply(crc_, shift), crc64::multiply(cover_, shift)};
  }

 private:
  std::uint64_t crc_ = 0;
  std::uint64_t cover_ = 0;
  std::int64_t end_ = 0;
};

std::int64_t block_end(std::int64_t block, std::int64_t extent_bytes) {
  return std::min((block + 1) * ExtentMap::block_bytes, extent_bytes);
}

}  // namespace

Tally::Tally(std::span<const TensorDesc> tensors, const ExtentMap& extents, bool with_blocks)
    : tensors_(tensors),
      extents_(extents),
      cells_(std::make_unique<Cell[]>(tensors.size() * extents.copies())) {
  for (const TensorDesc& tensor : tensors) tensor_bytes_.push_back(num_bytes(tensor));
  if (!with_blocks) return;

  std::int64_t blocks = 0;
  for (const Extent& extent : extents.extents()) {
    first_block_.push_back(blocks);
    blocks += num_blocks(extent);
  }
  blocks_ = std::make_unique<std::atomic<std::uint64_t>[]>(as_size(blocks));
  frames_.resize(extents.all_frames().size());
}

Tap Tally::tap() {
  return {[this](std::uint32_t file, std::int64_t offset, Tap::Bytes bytes) {
            add(file, offset, bytes);
          },
          [this](std::int64_t number, const Frame& place, Digest digest) {
            add_frame(number, place, digest);
          },
          [this](std::int64_t number, std::int64_t within, Tap::Bytes bytes) {
            add_unpacked(number, within, bytes);
          }};
}

void Tally::add_frame(std::int64_t number, const Frame& place, Digest digest) {
  stored_.fetch_add(place.length_bytes, std::memory_order_relaxed);
  if (!blocks_) return;
  const std::uint32_t extent = extents_.extent_of_frame(number);
  const std::int64_t k = number - extents_.extents()[extent].first_frame;
  blocks_[as_size(first_block_[extent] + k)] = digest.value;
  frames_[as_size(number)] = place;
}

void Tally::add_unpacked(std::int64_t number, std::int64_t within,
                         std::span<const std::byte> bytes) {
  const Extent& extent = extents_.extents()[extents_.extent_of_frame(number)];
  const TensorDesc& desc = tensors_[extent.tensor];
  const std::int64_t begin =
      chunk_range(desc.dtype, extent, number - extent.first_frame).begin + within;
  TensorSum sum;
  sum.add_runs(byte_view(desc, extent.box), begin, bytes);
  const auto [crc, cover] = sum.within(tensor_bytes_[extent.tensor]);
  add_sum(extent, std::ssize(bytes), crc, cover);
  bytes_.fetch_add(std::ssize(bytes), std::memory_order_relaxed);
}

void Tally::add_sum(const Extent& extent, std::int64_t bytes, std::uint64_t crc,
                    std::uint64_t cover) {
  Cell& cell = cells_[extent.tensor * std::size_t{extents_.copies()} + extent.copy];
  cell.crc.fetch_xor(crc, std::memory_order_relaxed);
  cell.cover.fetch_xor(cover, std::memory_order_relaxed);
  cell.bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void Tally::add(std::uint32_t file, std::int64_t offset, std::span<const std::byte> bytes) {
  std::int64_t counted = 0;
  for_each_extent(extents_, file, offset, bytes,
                  [&](const Extent& extent, std::int64_t begin, std::span<const std::byte> part) {
                    add_to_extent(extent, begin, part);
                    counted += std::ssize(part);
                  });
  bytes_.fetch_add(std::ssize(bytes), std::memory_order_relaxed);
  stored_.fetch_add(std::ssize(bytes), std::memory_order_relaxed);
  stray_.fetch_add(std::ssize(bytes) - counted, std::memory_order_relaxed);
}

void Tally::add_to_extent(const Extent& extent, std::int64_t begin,
                          std::span<const std::byte> bytes) {
  const ByteView view = byte_view(tensors_[extent.tensor], extent.box);
  const std::int64_t end = begin + std::ssize(bytes);
  const auto number = as_size(&extent - extents_.extents().data());
  TensorSum sum;
  for (std::int64_t from = begin; from < end;) {
    const std::int64_t block = from / ExtentMap::block_bytes;
    const std::int64_t border = block_end(block, extent.length_bytes);
    const std::int64_t to = blocks_ ? std::min(end, border) : end;
    const std::uint64_t packed =
        sum.add_runs(view, from, bytes.subspan(as_size(from - begin), as_size(to - from)));
    if (blocks_) {
      blocks_[as_size(first_block_[number] + block)].fetch_xor(
          crc64::multiply(packed, crc64::power(border - to)), std::memory_order_relaxed);
    }
    from = to;
  }

  const auto [crc, cover] = sum.within(tensor_bytes_[extent.tensor]);
  add_sum(extent, std::ssize(bytes), crc, cover);
}

Tally::Sum Tally::sum(std::size_t tensor, std::uint32_t copy) const {
  const std::int64_t total = tensor_bytes_[tensor];
  if (copy >= extents_.copies()) return {Digest{}, 0, total == 0};
  const Cell& cell = cells_[tensor * std::size_t{extents_.copies()} + copy];
  return {.digest = crc64::finish(cell.crc, total),
          .bytes = cell.bytes,
          .complete = cell.bytes == total && cell.cover == crc64::pure_ones(total)};
}

Digest Tally::block(std::size_t extent, std::int64_t k) const {
  assert(blocks_);
  const std::uint64_t sum = blocks_[as_size(first_block_[extent] + k)];
  if (is_chunked(extents_.extents()[extent])) return Digest{sum};
  const std::int64_t length = extents_.extents()[extent].length_bytes;
  return crc64::finish(sum, block_end(k, length) - k * ExtentMap::block_bytes);
}

}  // namespace remesh
