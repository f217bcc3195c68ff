#include "shard_format.hpp"

#include <optional>

#include <fmt/format.h>

#include "remesh/core/checked.hpp"

namespace remesh::native {
namespace {

// In the order in which Box::num_elements multiplies, so that no product of its wraps either.
std::optional<std::int64_t> checked_bits(const TensorDesc& desc) {
  std::optional<std::int64_t> product = 1;
  for (int dim = 0; dim < desc.extent.ndim() && product; ++dim) {
    product = checked_multiply<std::int64_t>(*product, desc.extent[dim].size());
  }
  if (!product) return std::nullopt;
  return checked_multiply<std::int64_t>(*product, bits(desc.dtype));
}

}  // namespace

Digest header_crc(std::span<const std::byte> block) {
  return digest_of(block.first(header_field::header_crc));
}

std::string version_refusal(std::string_view version) {
  if (version == "0") {
    return "it has format version 0, which was a draft; this remesh reads version 1";
  }
  return fmt::format("it has format version {}; this remesh reads version 1", version);
}

std::string shard_name(Rank rank, Index ranks) {
  return fmt::format("shard-{:05}-of-{:05}.h5", rank, ranks);
}

std::vector<ByteRange> complement(std::int64_t file_bytes, const ShardIndex& index) {
  std::vector<ByteRange> rest;
  std::int64_t at = header_bytes;
  const auto leave_out = [&](std::int64_t offset, std::int64_t length) {
    if (length == 0) return;
    if (offset > at) rest.push_back({at, offset});
    at = offset + length;
  };
  for (const Extent& extent : index.extents) {
    if (!is_chunked(extent)) {
      leave_out(extent.offset_bytes, extent.length_bytes);
      continue;
    }
    const auto frames = std::span(index.frames)
                            .subspan(static_cast<std::size_t>(extent.first_frame),
                                     static_cast<std::size_t>(num_blocks(extent)));
    for (const Frame& frame : frames) leave_out(frame.offset_bytes, frame.length_bytes);
  }
  if (file_bytes > at) rest.push_back({at, file_bytes});
  return rest;
}

std::int64_t number_blocks(std::span<Extent> extents) {
  std::int64_t next = 0;
  std::int64_t next_frame = 0;
  for (Extent& extent : extents) {
    extent.first_block = next;
    extent.first_frame = is_chunked(extent) ? next_frame : -1;
    const std::int64_t blocks = num_blocks(extent);
    next += blocks;
    if (is_chunked(extent)) next_frame += blocks;
  }
  return next;
}

std::string why_not_storable(const TensorDesc& desc) {
  if (desc.name.empty()) return "it has no name";
  if (desc.name.size() > most_name_bytes) {
    return fmt::format("its name has {} bytes, but at most {} are allowed", desc.name.size(),
                       most_name_bytes);
  }
  for (int dim = 0; dim < desc.extent.ndim(); ++dim) {
    if (desc.extent[dim].begin != 0 || desc.extent[dim].end < 0) {
      return fmt::format("dim {} is [{}, {})", dim, desc.extent[dim].begin, desc.extent[dim].end);
    }
  }
  const auto bits = checked_bits(desc);
  if (!bits) return "its size does not fit 63 bits";
  if (*bits % 8 != 0) return fmt::format("its {} bits are no whole bytes", *bits);
  return {};
}

}  // namespace remesh::native
