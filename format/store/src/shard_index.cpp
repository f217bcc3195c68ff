#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "damage.hpp"
#include "little_endian.hpp"
#include "remesh/store/chunks.hpp"
#include "shard_reader.hpp"

namespace remesh::native {
namespace {

// The columns of an index, one behind the other; the widest come first, so that all are aligned.
class Columns {
 public:
  explicit Columns(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <std::integral T>
  std::vector<T> take(std::uint64_t count) {
    const auto column = take_bytes(count * sizeof(T));
    std::vector<T> values(static_cast<std::size_t>(count));
    if (!values.empty()) std::memcpy(values.data(), column.data(), column.size());
    return values;
  }

  // Precondition: expected_bytes() was checked.
  std::span<const std::byte> take_bytes(std::uint64_t count) {
    const auto column = rest_.first(static_cast<std::size_t>(count));
    rest_ = rest_.subspan(static_cast<std::size_t>(count));
    return column;
  }

  std::span<const std::byte> rest() const noexcept { return rest_; }

 private:
  std::span<const std::byte> rest_;
};

IndexCounts load_counts(std::span<const std::byte> bytes) {
  return {load<std::uint64_t>(bytes, 0),  load<std::uint64_t>(bytes, 8),
          load<std::uint64_t>(bytes, 16), load<std::uint64_t>(bytes, 24),
          load<std::uint64_t>(bytes, 32), load<std::uint64_t>(bytes, 40),
          load<std::uint64_t>(bytes, 48)};
}

// Once no count exceeds the bytes of the index, no sum here can wrap.
void check_counts(const IndexCounts& counts, std::size_t index_bytes) {
  const std::array all{counts.tensors,    counts.extents,    counts.blocks, counts.shape_values,
                       counts.box_values, counts.name_bytes, counts.frames};
  const bool sane = std::ranges::all_of(all, [&](auto count) { return count <= index_bytes; });
  const std::uint64_t needed =
      sane ? index_counts_bytes + 8 * (counts.shape_values + counts.box_values + counts.blocks) +
                 (8 * 4 + 4 * 2 + 1) * counts.extents + (8 + 4 + 1) * counts.frames +
                 (4 * 2 + 1 * 2) * counts.tensors + counts.name_bytes
           : 0;
  if (!sane || (needed + 7) / 8 * 8 != index_bytes) {
    damaged(
        fmt::format("its index counts {} tensors, {} extents and {} blocks, which do not fill "
                    "its {} bytes",
                    counts.tensors, counts.extents, counts.blocks, index_bytes));
  }
}

struct RawIndex {
  std::vector<std::int64_t> shapes, offsets, lengths, first_blocks, chunk_sizes, boxes;
  std::vector<std::int64_t> frame_offsets;
  std::vector<std::uint64_t> block_crcs;
  std::vector<std::uint32_t> numbers, name_bytes, tensors, copies, frame_bytes;
  std::vector<std::uint8_t> dtypes, ndims, chunk_dims, frame_raws;
  std::string names;
};

RawIndex split_columns(std::span<const std::byte> bytes) {
  const IndexCounts counts = load_counts(bytes);
  check_counts(counts, bytes.size());
  Columns columns(bytes.subspan(index_counts_bytes));
  RawIndex raw;
  raw.shapes = columns.take<std::int64_t>(counts.shape_values);
  raw.offsets = columns.take<std::int64_t>(counts.extents);
  raw.lengths = columns.take<std::int64_t>(counts.extents);
  raw.first_blocks = columns.take<std::int64_t>(counts.extents);
  raw.chunk_sizes = columns.take<std::int64_t>(counts.extents);
  raw.boxes = columns.take<std::int64_t>(counts.box_values);
  raw.block_crcs = columns.take<std::uint64_t>(counts.blocks);
  raw.frame_offsets = columns.take<std::int64_t>(counts.frames);
  raw.numbers = columns.take<std::uint32_t>(counts.tensors);
  raw.name_bytes = columns.take<std::uint32_t>(counts.tensors);
  raw.tensors = columns.take<std::uint32_t>(counts.extents);
  raw.copies = columns.take<std::uint32_t>(counts.extents);
  raw.frame_bytes = columns.take<std::uint32_t>(counts.frames);
  raw.dtypes = columns.take<std::uint8_t>(counts.tensors);
  raw.ndims = columns.take<std::uint8_t>(counts.tensors);
  raw.chunk_dims = columns.take<std::uint8_t>(counts.extents);
  raw.frame_raws = columns.take<std::uint8_t>(counts.frames);
  const auto names = columns.take_bytes(counts.name_bytes);
  raw.names.assign(reinterpret_cast<const char*>(names.data()), names.size());
  for (const std::byte pad : columns.rest()) {
    if (pad != std::byte{0}) damaged("its index does not end in zeros");
  }
  return raw;
}

// Hands out the values of a column that has several for each row.
template <typename Column>
class Cursor {
 public:
  explicit Cursor(const Column& column) : rest_(column) {}

  auto take(std::size_t count, const char* what) {
    if (count > rest_.size()) damaged(fmt::format("its index has too few {}", what));
    const auto values = rest_.first(count);
    rest_ = rest_.subspan(count);
    return values;
  }
  void finish(const char* what) const {
    if (!rest_.empty()) damaged(fmt::format("its index has {} {} too many", rest_.size(), what));
  }

 private:
  std::span<const typename Column::value_type> rest_;
};

bool known(std::uint8_t dtype) {
  return std::ranges::find(all_dtypes(), static_cast<DType>(dtype)) != all_dtypes().end();
}

std::vector<ShardTensor> parse_tensors(const RawIndex& raw) {
  Cursor names(raw.names);
  Cursor shapes(raw.shapes);
  std::vector<ShardTensor> tensors;
  tensors.reserve(raw.numbers.size());
  for (std::size_t at = 0; at < raw.numbers.size(); ++at) {
    if (!known(raw.dtypes[at])) damaged(fmt::format("its index has dtype {}", raw.dtypes[at]));
    if (raw.ndims[at] > max_ndim) damaged(fmt::format("its index has {} dims", raw.ndims[at]));
    const auto name = names.take(raw.name_bytes[at], "name bytes");
    const auto shape = shapes.take(raw.ndims[at], "shape values");
    ShardTensor tensor{raw.numbers[at],
                       {std::string(name.begin(), name.end()), static_cast<DType>(raw.dtypes[at]),
                        Box::whole(shape)}};
    if (const auto reason = why_not_storable(tensor.desc); !reason.empty()) {
      damaged(fmt::format("its index lists tensor {}: {}", tensor.number, reason));
    }
    if (at > 0 && tensors.back().number >= tensor.number) {
      damaged(
          fmt::format("its index lists tensor {} after {}", tensor.number, tensors.back().number));
    }
    tensors.push_back(std::move(tensor));
  }
  names.finish("name bytes");
  shapes.finish("shape values");
  return tensors;
}

Box parse_box(std::span<const std::int64_t> values, const ShardTensor& tensor) {
  Box box = Box::of_ndim(values.size() / 2);
  for (int dim = 0; dim < box.ndim(); ++dim) {
    const auto at = 2 * static_cast<std::size_t>(dim);
    box[dim] = {values[at], values[at + 1]};
  }
  for (int dim = 0; dim < box.ndim(); ++dim) {
    if (box[dim].begin < 0 || box[dim].end < box[dim].begin ||
        box[dim].end > tensor.desc.extent[dim].end) {
      damaged(
          fmt::format("its index has the box {} of {}", to_string(box), to_string(tensor.desc)));
    }
  }
  return box;
}

void check_length(const Extent& extent, const ShardTensor& tensor) {
  const std::int64_t bits_of_box = extent.box.num_elements() * bits(tensor.desc.dtype);
  if (bits_of_box % 8 != 0 || bits_of_box / 8 != extent.length_bytes) {
    damaged(fmt::format("its index gives {} bytes to {} of {}", extent.length_bytes,
                        to_string(extent.box), to_string(tensor.desc)));
  }
}

[[noreturn]] void refuse_chunks(const Extent& extent, const ShardTensor& tensor) {
  damaged(fmt::format("its index cuts {} of {} into chunks of {} along dim {}",
                      to_string(extent.box), to_string(tensor.desc), extent.chunk_size,
                      extent.chunk_dim));
}

// How an extent is cut. Chunks are no larger than a block, so frames bound what they unpack to.
void take_chunks(const RawIndex& raw, std::size_t at, const ShardTensor& tensor, Extent& extent) {
  extent.chunk_size = raw.chunk_sizes[at];
  extent.chunk_dim = raw.chunk_dims[at] == not_chunked ? -1 : int{raw.chunk_dims[at]};
  const DType dtype = tensor.desc.dtype;
  if (!is_chunked(extent)) {
    if (extent.chunk_size != 0) refuse_chunks(extent, tensor);
    return;
  }
  if (extent.chunk_dim >= extent.box.ndim() || extent.length_bytes == 0 || bits(dtype) % 8 != 0 ||
      extent.chunk_size < 1 || extent.chunk_size > extent.box[extent.chunk_dim].size() ||
      whole_chunk_bytes(dtype, extent) > most_chunk_bytes) {
    refuse_chunks(extent, tensor);
  }
}

std::vector<Extent> parse_extents(const RawIndex& raw, std::span<const ShardTensor> tensors,
                                  Rank rank, Index ranks) {
  Cursor boxes(raw.boxes);
  std::vector<Extent> extents;
  extents.reserve(raw.offsets.size());
  for (std::size_t at = 0; at < raw.offsets.size(); ++at) {
    if (raw.tensors[at] >= tensors.size()) {
      damaged(fmt::format("its index has an extent of tensor {} of {}", raw.tensors[at],
                          tensors.size()));
    }
    if (raw.copies[at] >= ranks) {
      damaged(fmt::format("its index has copy {} of a piece, but there are {} ranks",
                          raw.copies[at], ranks));
    }
    const ShardTensor& tensor = tensors[raw.tensors[at]];
    const auto ndim = static_cast<std::size_t>(tensor.desc.extent.ndim());
    extents.push_back({.tensor = raw.tensors[at],
                       .file = 0,
                       .rank = rank,
                       .copy = raw.copies[at],
                       .offset_bytes = raw.offsets[at],
                       .length_bytes = raw.lengths[at],
                       .box = parse_box(boxes.take(2 * ndim, "box values"), tensor),
                       .first_block = raw.first_blocks[at]});
    check_length(extents.back(), tensor);
    take_chunks(raw, at, tensor, extents.back());
  }
  boxes.finish("box values");
  return extents;
}

std::vector<Frame> parse_frames(const RawIndex& raw) {
  std::vector<Frame> frames;
  frames.reserve(raw.frame_offsets.size());
  for (std::size_t at = 0; at < raw.frame_offsets.size(); ++at) {
    if (raw.frame_raws[at] > 1 || raw.frame_bytes[at] > most_chunk_bytes) {
      damaged(fmt::format("its index has a frame of kind {} with {} bytes", raw.frame_raws[at],
                          raw.frame_bytes[at]));
    }
    frames.push_back({raw.frame_offsets[at], static_cast<std::int32_t>(raw.frame_bytes[at]),
                      raw.frame_raws[at] == 1});
  }
  return frames;
}

auto order_of(const Extent& extent) {
  return std::tie(extent.offset_bytes, extent.tensor, extent.box, extent.copy);
}

bool overlap(const ByteRange& a, const ByteRange& b) { return a.begin < b.end && b.begin < a.end; }

// That bytes lie in the file, behind those before them, and not on the index.
void check_bytes(std::int64_t offset, std::int64_t length, std::int64_t earliest,
                 const ShardHeader& header) {
  if (offset < header_bytes || offset > header.file_bytes || length > header.file_bytes - offset) {
    damaged(fmt::format("its index places {} bytes at {}, but it has {} bytes", length, offset,
                        header.file_bytes));
  }
  if (offset < earliest || overlap({offset, offset + length}, header.index)) {
    damaged(fmt::format("its index places {} bytes at {}, where others lie", length, offset),
            "RM209");
  }
}

void check_place(const Extent& extent, std::int64_t earliest, const ShardHeader& header) {
  if (extent.length_bytes == 0) {
    if (extent.offset_bytes != 0) damaged("its index gives a place to no bytes");
    return;
  }
  check_bytes(extent.offset_bytes, extent.length_bytes, earliest, header);
}

// The frames of one extent, the first of which is where the extent is. Returns their end.
std::int64_t check_frames(const Extent& extent, const ShardIndex& index, std::int64_t earliest,
                          const ShardHeader& header) {
  const DType dtype = index.tensors[extent.tensor].desc.dtype;
  const std::int64_t whole = whole_chunk_bytes(dtype, extent);
  const auto first = static_cast<std::size_t>(extent.first_frame);
  if (index.frames[first].offset_bytes != extent.offset_bytes) {
    damaged(fmt::format("its index places frames at {}, but the first of them at {}",
                        extent.offset_bytes, index.frames[first].offset_bytes));
  }
  for (std::int64_t k = 0; k < num_chunks(extent); ++k) {
    const Frame& frame = index.frames[first + static_cast<std::size_t>(k)];
    if (frame.raw ? frame.length_bytes != whole
                  : frame.length_bytes < 1 || frame.length_bytes >= whole) {
      damaged(fmt::format("its index gives {} bytes to a {} chunk of {}", frame.length_bytes,
                          frame.raw ? "plain" : "compressed", whole));
    }
    check_bytes(frame.offset_bytes, frame.length_bytes, earliest, header);
    earliest = frame.offset_bytes + frame.length_bytes;
  }
  return earliest;
}

// Until a shard is sealed its frames have no places, and begin where the file ended at first.
std::int64_t check_no_frames(const Extent& extent, const ShardIndex& index,
                             const ShardHeader& header) {
  const auto frames = std::span(index.frames)
                          .subspan(static_cast<std::size_t>(extent.first_frame),
                                   static_cast<std::size_t>(num_chunks(extent)));
  if (extent.offset_bytes != header.file_bytes ||
      std::ranges::any_of(frames, [](const Frame& frame) { return frame != Frame{}; })) {
    damaged("its index places frames, but it was never finished");
  }
  return header.file_bytes;
}

// The next number of a block or frame, which the index has.
std::int64_t checked_sum(std::int64_t before, std::int64_t more, std::size_t most) {
  if (more > static_cast<std::int64_t>(most) - before) {
    damaged(fmt::format("its index has {} blocks or frames, but more are needed", most));
  }
  return before + more;
}

// Places, order and numbers of blocks and frames of all extents.
void check_places(ShardIndex& index, const ShardHeader& header) {
  std::int64_t end = 0;
  std::int64_t blocks = 0;
  std::int64_t frames = 0;
  for (std::size_t at = 0; at < index.extents.size(); ++at) {
    Extent& extent = index.extents[at];
    if (at > 0 && order_of(index.extents[at - 1]) >= order_of(extent)) {
      damaged("the extents of its index are out of order");
    }
    if (extent.first_block != blocks) damaged("the blocks of its index are out of order");
    blocks = checked_sum(blocks, num_blocks(extent), index.block_crcs.size());
    if (is_chunked(extent)) {
      extent.first_frame = frames;
      frames = checked_sum(frames, num_chunks(extent), index.frames.size());
      end = header.sealed ? check_frames(extent, index, end, header)
                          : check_no_frames(extent, index, header);
      continue;
    }
    check_place(extent, end, header);
    if (extent.length_bytes > 0) end = extent.offset_bytes + extent.length_bytes;
  }
  if (static_cast<std::size_t>(frames) != index.frames.size()) {
    damaged(fmt::format("its index has {} frames for {} chunks", index.frames.size(), frames));
  }
  if (static_cast<std::size_t>(blocks) != index.block_crcs.size()) {
    damaged(fmt::format("its index records {} block CRCs for {} blocks", index.block_crcs.size(),
                        blocks));
  }
}

}  // namespace

ShardIndex parse_index(std::span<const std::byte> bytes, const ShardHeader& header) {
  if (bytes.size() < index_counts_bytes) damaged("its index is too short to have counts");
  const RawIndex raw = split_columns(bytes);
  ShardIndex index;
  index.tensors = parse_tensors(raw);
  index.extents = parse_extents(raw, index.tensors, header.rank, header.ranks);
  index.block_crcs.reserve(raw.block_crcs.size());
  for (const std::uint64_t crc : raw.block_crcs) index.block_crcs.push_back({crc});
  index.frames = parse_frames(raw);
  check_places(index, header);
  return index;
}

}  // namespace remesh::native
