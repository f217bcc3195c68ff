#include "remesh/store/extents.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "remesh/store/chunks.hpp"

namespace remesh {
namespace {

auto place_in_files(const Extent& extent) {
  return std::tie(extent.file, extent.offset_bytes, extent.tensor, extent.box, extent.copy);
}

auto place_in_tensor(const Extent& extent) {
  return std::tie(extent.tensor, extent.copy, extent.box);
}

bool before(const Extent& extent, std::uint32_t file, std::int64_t offset) {
  return std::tie(extent.file, extent.offset_bytes) <= std::tie(file, offset);
}

}  // namespace

ExtentMap::ExtentMap(std::vector<FileEntry> files, std::vector<Extent> extents,
                     std::vector<Digest> block_crcs, std::vector<Guard> guards,
                     std::vector<Frame> frames)
    : files_(std::move(files)),
      extents_(std::move(extents)),
      block_crcs_(std::move(block_crcs)),
      guards_(std::move(guards)),
      frames_(std::move(frames)),
      by_tensor_(extents_.size()) {
  if (!std::ranges::is_sorted(extents_, {}, place_in_files)) {
    std::ranges::sort(extents_, {}, place_in_files);
  }
  std::iota(by_tensor_.begin(), by_tensor_.end(), std::uint32_t{0});
  const auto place = [this](std::uint32_t number) { return place_in_tensor(extents_[number]); };
  if (!std::ranges::is_sorted(by_tensor_, {}, place)) {
    std::ranges::stable_sort(by_tensor_, {}, place);
  }

  for (std::uint32_t number = 0; number < extents_.size(); ++number) {
    if (extents_[number].length_bytes > 0) with_bytes_.push_back(number);
    copies_ = std::max(copies_, extents_[number].copy + 1);
  }
  for (std::size_t at = 0; at < by_tensor_.size(); ++at) {
    first_of_tensor_.resize(
        std::max(first_of_tensor_.size(), std::size_t{extents_[by_tensor_[at]].tensor} + 1), at);
  }
  first_of_tensor_.push_back(by_tensor_.size());
}

std::span<const std::uint32_t> ExtentMap::of(std::size_t tensor) const noexcept {
  if (tensor + 1 >= first_of_tensor_.size()) return {};
  const std::size_t first = first_of_tensor_[tensor];
  return std::span(by_tensor_).subspan(first, first_of_tensor_[tensor + 1] - first);
}

std::span<const Digest> ExtentMap::blocks(const Extent& extent) const noexcept {
  if (extent.first_block < 0) return {};
  return std::span(block_crcs_)
      .subspan(static_cast<std::size_t>(extent.first_block),
               static_cast<std::size_t>(num_blocks(extent)));
}

std::span<const Frame> ExtentMap::frames(const Extent& extent) const noexcept {
  if (!is_chunked(extent)) return {};
  return std::span(frames_).subspan(static_cast<std::size_t>(extent.first_frame),
                                    static_cast<std::size_t>(num_blocks(extent)));
}

ByteRange ExtentMap::place(const Extent& extent) const noexcept {
  if (!is_chunked(extent)) {
    return {extent.offset_bytes, extent.offset_bytes + extent.length_bytes};
  }
  const Frame& last = frames(extent).back();
  return {extent.offset_bytes, last.offset_bytes + last.length_bytes};
}

const Extent* ExtentMap::at(std::uint32_t file, std::int64_t offset) const noexcept {
  const auto next = std::ranges::partition_point(
      with_bytes_, [&](std::uint32_t number) { return before(extents_[number], file, offset); });
  if (next == with_bytes_.begin()) return nullptr;
  const Extent& extent = extents_[*std::prev(next)];
  const bool holds = extent.file == file && offset < place(extent).end;
  return holds ? &extent : nullptr;
}

bool ExtentMap::same_places(const ExtentMap& other) const noexcept {
  return std::ranges::equal(
      extents_, other.extents_, [&](const Extent& mine, const Extent& theirs) {
        Extent other_numbers = mine;  // of file, blocks and frames: none of them is a place
        other_numbers.file = theirs.file;
        other_numbers.first_block = theirs.first_block;
        other_numbers.first_frame = theirs.first_frame;
        return other_numbers == theirs &&
               files_[mine.file].name == other.files_[theirs.file].name &&
               std::ranges::equal(frames(mine), other.frames(theirs));
      });
}

std::int64_t num_blocks(const Extent& extent) noexcept {
  return is_chunked(extent) ? num_chunks(extent) : num_blocks(extent.length_bytes);
}

std::int64_t num_blocks(std::int64_t length_bytes) noexcept {
  return length_bytes / ExtentMap::block_bytes +
         (length_bytes % ExtentMap::block_bytes != 0 ? 1 : 0);
}

}  // namespace remesh
