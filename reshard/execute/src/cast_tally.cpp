#include "cast_tally.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "remesh/schema/cast.hpp"
#include "remesh/store/chunks.hpp"

namespace remesh::detail {
namespace {

constexpr std::int64_t values_at_a_time = 4096;

}  // namespace

CastTally::CastTally(const Catalog& source, const ExtentMap& extents, const Catalog& target,
                     std::span<const std::size_t> source_of)
    : extents_(extents),
      map_(scaled_map(extents, target, source_of, source, scaled_)),
      tally_(target.tensors, map_, /*with_blocks=*/false),
      rounded_(target.tensors.size()) {
  for (std::size_t tensor = 0; tensor < source_of.size(); ++tensor) {
    tensors_ += source.tensors[source_of[tensor]].dtype != target.tensors[tensor].dtype;
  }
}

std::int64_t CastTally::rounded() const noexcept {
  std::int64_t sum = 0;
  for (const auto& each : rounded_) sum += each.load();
  return sum;
}

// One file, in which the cast values of each extent lie one behind the other.
ExtentMap CastTally::scaled_map(const ExtentMap& extents, const Catalog& target,
                                std::span<const std::size_t> source_of, const Catalog& source,
                                std::vector<Scaled>& scaled) {
  scaled.resize(extents.extents().size());
  std::vector<Extent> imagined;
  std::int64_t end = 0;
  for (std::size_t tensor = 0; tensor < source_of.size(); ++tensor) {
    const DType from = source.tensors[source_of[tensor]].dtype;
    const DType to = target.tensors[tensor].dtype;
    if (from == to) continue;
    for (const std::uint32_t number : extents.of(source_of[tensor])) {
      const Extent& extent = extents.extents()[number];
      if (extent.copy != 0) continue;
      const std::int64_t length = num_bytes(to, extent.box);
      scaled[number] = {end, from, to, tensor};
      imagined.push_back({.tensor = static_cast<std::uint32_t>(tensor),
                          .offset_bytes = end,
                          .length_bytes = length,
                          .box = extent.box});
      end += length;
    }
  }
  return {{{"cast", end}}, std::move(imagined)};
}

void CastTally::add(std::uint32_t file, std::int64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const Extent* extent = extents_.at(file, offset);
    if (extent == nullptr) return;
    const std::int64_t within = offset - extent->offset_bytes;
    const std::int64_t length = std::min(extent->length_bytes - within, std::ssize(bytes));
    const Scaled& scaled = scaled_[static_cast<std::size_t>(extent - extents_.extents().data())];
    if (scaled.begin_bytes >= 0) {
      add_values(scaled, within, bytes.first(static_cast<std::size_t>(length)));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(length));
    offset += length;
  }
}

void CastTally::add_unpacked(std::int64_t number, std::int64_t within,
                             std::span<const std::byte> bytes) {
  const std::uint32_t at = extents_.extent_of_frame(number);
  const Extent& extent = extents_.extents()[at];
  const Scaled& scaled = scaled_[at];
  if (scaled.begin_bytes < 0) return;
  const std::int64_t chunk = chunk_range(scaled.from, extent, number - extent.first_frame).begin;
  add_values(scaled, chunk + within, bytes);
}

void CastTally::add_values(const Scaled& scaled, std::int64_t offset,
                           std::span<const std::byte> bytes) {
  const std::int64_t from_bytes = bits(scaled.from) / 8;
  const std::int64_t to_bytes = bits(scaled.to) / 8;
  std::array<std::byte, values_at_a_time * 8> converted;
  std::int64_t at = scaled.begin_bytes + offset / from_bytes * to_bytes;
  std::int64_t rounded = 0;
  while (!bytes.empty()) {
    const std::int64_t values = std::min(values_at_a_time, std::ssize(bytes) / from_bytes);
    const auto in = bytes.first(static_cast<std::size_t>(values * from_bytes));
    const auto out = std::span(converted).first(static_cast<std::size_t>(values * to_bytes));
    rounded += cast_by_the_book(scaled.from, in, scaled.to, out).rounded;
    tally_.add(0, at, out);
    at += std::ssize(out);
    bytes = bytes.subspan(in.size());
  }
  rounded_[scaled.tensor].fetch_add(rounded, std::memory_order_relaxed);
}

}  // namespace remesh::detail
