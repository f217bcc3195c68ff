#include "numbers.hpp"

#include <algorithm>

#include "remesh/store/chunks.hpp"
#include "remesh/store/extent_runs.hpp"

namespace remesh::detail {
namespace {

std::int64_t element_bytes(DType dtype) { return bits(dtype) / 8; }

std::span<const std::byte> slice(std::span<const std::byte> bytes, std::int64_t begin,
                                 std::int64_t end) {
  return bytes.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

// An element of a piece, as the whole tensor numbers it.
void number_anew(Index& place, const TensorDesc& desc, const Extent& extent, Index first) {
  if (place == NumberCounts::nowhere) return;
  place = number_of(desc.extent, element_of(extent.box, first + place));
}

}  // namespace

Index number_of(const Box& box, const Box& element) noexcept {
  Index number = 0;
  for (int dim = 0; dim < box.ndim(); ++dim) {
    number = number * box[dim].size() + element[dim].begin - box[dim].begin;
  }
  return number;
}

ElementPlace place_of_element(const Reader& reader, std::size_t tensor, Index number) {
  const TensorDesc& desc = reader.catalog().tensors[tensor];
  const ExtentMap& map = reader.extents();
  ElementPlace place{.element = element_of(desc.extent, number)};
  for (const std::uint32_t which : map.of(tensor)) {
    const Extent& extent = map.extents()[which];
    if (extent.copy != 0 || !contains(extent.box, place.element)) continue;
    const std::int64_t width = element_bytes(desc.dtype);
    const std::int64_t at = number_of(extent.box, place.element) * width;
    place.file = extent.file;
    place.bytes = {extent.offset_bytes + at, extent.offset_bytes + at + width};
    if (is_chunked(extent)) {
      const auto k = static_cast<std::size_t>(chunk_at(desc.dtype, extent, at));
      const Frame& frame = map.frames(extent)[k];
      place.bytes = {frame.offset_bytes, frame.offset_bytes + frame.length_bytes};
    }
    break;
  }
  return place;
}

Numbers::Numbers(std::span<const TensorDesc> tensors, const ExtentMap& extents)
    : tensors_(tensors), extents_(extents), counts_(tensors.size()) {}

void Numbers::add(std::uint32_t file, std::int64_t offset, std::span<const std::byte> bytes) {
  for_each_extent(extents_, file, offset, bytes,
                  [this](const Extent& extent, std::int64_t begin,
                         std::span<const std::byte> part) { add_run(extent, begin, part); });
}

void Numbers::add_unpacked(std::int64_t number, std::int64_t within,
                           std::span<const std::byte> bytes) {
  const Extent& extent = extents_.extents()[extents_.extent_of_frame(number)];
  const DType dtype = tensors_[extent.tensor].dtype;
  add_run(extent, chunk_range(dtype, extent, number - extent.first_frame).begin + within, bytes);
}

void Numbers::add_run(const Extent& extent, std::int64_t begin, std::span<const std::byte> bytes) {
  const DType dtype = tensors_[extent.tensor].dtype;
  if (extent.copy != 0 || !is_counted(dtype)) return;
  const std::int64_t width = element_bytes(dtype);
  const std::int64_t size = std::ssize(bytes);
  const std::int64_t head = std::min((width - begin % width) % width, size);
  const std::int64_t tail = std::max(size - (begin + size) % width, head);
  if (head > 0) add_part(extent, begin, slice(bytes, 0, head));
  if (tail > head) add_whole(extent, (begin + head) / width, slice(bytes, head, tail));
  if (size > tail) add_part(extent, begin + tail, slice(bytes, tail, size));
}

void Numbers::add_part(const Extent& extent, std::int64_t begin, std::span<const std::byte> bytes) {
  const std::int64_t width = element_bytes(tensors_[extent.tensor].dtype);
  const std::pair key(&extent, begin / width);
  Part whole;
  {
    const std::lock_guard lock(parts_mutex_);
    Part& part = parts_[key];
    std::ranges::copy(bytes, part.bytes.begin() + begin % width);
    part.known += std::ssize(bytes);
    if (part.known < width) return;
    whole = part;
    parts_.erase(key);
  }
  add_whole(extent, key.second, slice(whole.bytes, 0, width));
}

void Numbers::add_whole(const Extent& extent, Index first, std::span<const std::byte> bytes) {
  const TensorDesc& desc = tensors_[extent.tensor];
  NumberCounts counts = count_numbers(desc.dtype, bytes);
  number_anew(counts.first_not_finite, desc, extent, first);
  number_anew(counts.first_negative, desc, extent, first);
  const std::lock_guard lock(mutexes_[extent.tensor % mutexes_.size()]);
  detail::add(counts_[extent.tensor], counts);
}

}  // namespace remesh::detail
