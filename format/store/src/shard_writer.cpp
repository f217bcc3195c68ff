#include "shard_writer.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <tuple>

#include "little_endian.hpp"
#include "shard_hdf5.hpp"

namespace remesh::native {
namespace {

IndexCounts count(const ShardIndex& index) {
  IndexCounts counts{.tensors = index.tensors.size(),
                     .extents = index.extents.size(),
                     .blocks = index.block_crcs.size(),
                     .frames = index.frames.size()};
  for (const ShardTensor& tensor : index.tensors) {
    counts.shape_values += static_cast<std::uint64_t>(tensor.desc.extent.ndim());
    counts.name_bytes += tensor.desc.name.size();
  }
  for (const Extent& extent : index.extents) {
    counts.box_values += 2 * static_cast<std::uint64_t>(extent.box.ndim());
  }
  return counts;
}

void append_wide_columns(std::vector<std::byte>& bytes, const ShardIndex& index) {
  for (const ShardTensor& tensor : index.tensors) {
    for (int dim = 0; dim < tensor.desc.extent.ndim(); ++dim) {
      append(bytes, tensor.desc.extent[dim].end);
    }
  }
  for (const Extent& extent : index.extents) append(bytes, extent.offset_bytes);
  for (const Extent& extent : index.extents) append(bytes, extent.length_bytes);
  for (const Extent& extent : index.extents) append(bytes, extent.first_block);
  for (const Extent& extent : index.extents) append(bytes, extent.chunk_size);
  for (const Extent& extent : index.extents) {
    for (int dim = 0; dim < extent.box.ndim(); ++dim) {
      append(bytes, extent.box[dim].begin);
      append(bytes, extent.box[dim].end);
    }
  }
  for (const Digest crc : index.block_crcs) append(bytes, crc.value);
  for (const Frame& frame : index.frames) append(bytes, frame.offset_bytes);
}

void append_narrow_columns(std::vector<std::byte>& bytes, const ShardIndex& index) {
  for (const ShardTensor& tensor : index.tensors) append(bytes, tensor.number);
  for (const ShardTensor& tensor : index.tensors) {
    append(bytes, static_cast<std::uint32_t>(tensor.desc.name.size()));
  }
  for (const Extent& extent : index.extents) append(bytes, extent.tensor);
  for (const Extent& extent : index.extents) append(bytes, extent.copy);
  for (const Frame& frame : index.frames) {
    append(bytes, static_cast<std::uint32_t>(frame.length_bytes));
  }
  for (const ShardTensor& tensor : index.tensors) {
    append(bytes, static_cast<std::uint8_t>(tensor.desc.dtype));
  }
  for (const ShardTensor& tensor : index.tensors) {
    append(bytes, static_cast<std::uint8_t>(tensor.desc.extent.ndim()));
  }
  for (const Extent& extent : index.extents) {
    append(bytes, is_chunked(extent) ? static_cast<std::uint8_t>(extent.chunk_dim) : not_chunked);
  }
  for (const Frame& frame : index.frames) append(bytes, static_cast<std::uint8_t>(frame.raw));
  for (const ShardTensor& tensor : index.tensors) {
    const auto name = std::as_bytes(std::span(tensor.desc.name));
    bytes.insert(bytes.end(), name.begin(), name.end());
  }
}

auto order_of(const Extent& extent) {
  return std::tie(extent.offset_bytes, extent.tensor, extent.box, extent.copy);
}

// The CRC of all bytes that are neither header nor payload, in file order.
Digest hash_complement(const File& file, const ShardDraft& draft) {
  constexpr std::int64_t step = std::int64_t{1} << 20;
  std::vector<std::byte> buffer(static_cast<std::size_t>(step));
  Digest digest;
  for (const ByteRange& range : complement(draft.header.file_bytes, draft.index)) {
    for (std::int64_t at = range.begin; at < range.end; at += step) {
      const auto bytes =
          std::span(buffer).first(static_cast<std::size_t>(std::min(step, range.end - at)));
      file.read_at(at, bytes);
      digest = extend(digest, bytes);
    }
  }
  return digest;
}

// Index before header: a header that can be parsed never points to an index that was not written.
void write_tables(File& file, ShardDraft& draft) {
  const std::vector<std::byte> index = encode(draft.index);
  draft.header.index_crc = digest_of(index);
  file.write_at(draft.header.index.begin, index);
  if (draft.header.sealed) draft.header.complement_crc = hash_complement(file, draft);
  file.write_at(0, encode(draft.header));
}

std::size_t count_frames(const ShardIndex& index) {
  std::int64_t count = 0;
  for (const Extent& extent : index.extents) {
    if (is_chunked(extent)) count += num_blocks(extent);
  }
  return static_cast<std::size_t>(count);
}

// What lies before the frames is settled; until the frames are there, their extents are said to
// begin where the first of them will, which is where the file ends for now.
void create_for_frames(FileSystem& files, const FileSystem::Path& path, ShardDraft& draft,
                       std::int64_t index_bytes) {
  const std::unique_ptr<File> file = files.create(path);
  draft.frames = plan_frames(*file, path, draft.index, index_bytes);
  draft.header.index = {draft.frames->index_offset, draft.frames->index_offset + index_bytes};
  draft.header.file_bytes = draft.frames->frames_begin;
  for (Extent& extent : draft.index.extents) {
    if (is_chunked(extent)) extent.offset_bytes = draft.frames->frames_begin;
  }
  std::ranges::sort(draft.index.extents, {}, order_of);
  number_blocks(draft.index.extents);
  if (file->size_bytes() < draft.header.file_bytes) {
    file->write_at(draft.header.file_bytes - 1, std::vector<std::byte>(1));
  }
  write_tables(*file, draft);
}

}  // namespace

std::vector<std::byte> encode(const ShardHeader& header) {
  std::vector<std::byte> block(static_cast<std::size_t>(header_bytes));
  std::ranges::copy(std::as_bytes(std::span(magic)), block.begin());
  store(block, header_field::version, format_version);
  store(block, header_field::state, std::uint32_t{header.sealed ? 1U : 0U});
  store(block, header_field::file_bytes, header.file_bytes);
  store(block, header_field::index_offset, header.index.begin);
  store(block, header_field::index_bytes, header.index.end - header.index.begin);
  store(block, header_field::index_crc, header.index_crc.value);
  store(block, header_field::complement_crc, header.complement_crc.value);
  store(block, header_field::rank, static_cast<std::uint32_t>(header.rank));
  store(block, header_field::ranks, static_cast<std::uint32_t>(header.ranks));
  std::ranges::copy(header.save_id, block.begin() + header_field::save_id);
  store(block, header_field::header_crc, header_crc(block).value);
  return block;
}

std::vector<std::byte> encode(const ShardIndex& index) {
  const IndexCounts counts = count(index);
  std::vector<std::byte> bytes;
  for (const std::uint64_t each :
       {counts.tensors, counts.extents, counts.blocks, counts.shape_values, counts.box_values,
        counts.name_bytes, counts.frames}) {
    append(bytes, each);
  }
  append_wide_columns(bytes, index);
  append_narrow_columns(bytes, index);
  bytes.resize((bytes.size() + 7) / 8 * 8);
  return bytes;
}

void create_shard(FileSystem& files, const FileSystem::Path& path, ShardDraft& draft) {
  const auto blocks = static_cast<std::size_t>(number_blocks(draft.index.extents));
  draft.index.block_crcs.assign(blocks, Digest{});
  draft.index.frames.assign(count_frames(draft.index), Frame{});
  const auto index_bytes = static_cast<std::int64_t>(encode(draft.index).size());
  if (!draft.index.frames.empty()) return create_for_frames(files, path, draft, index_bytes);

  draft.header.index.begin = create_hdf5(files, path, draft.index, index_bytes);
  draft.header.index.end = draft.header.index.begin + index_bytes;
  std::ranges::sort(draft.index.extents, {}, order_of);
  number_blocks(draft.index.extents);

  const std::unique_ptr<File> file = files.open_for_writing(path);
  draft.header.file_bytes = file->size_bytes();
  write_tables(*file, draft);
}

void finish_frames(File& file, const FileSystem::Path& path, ShardDraft& draft,
                   std::span<const Frame> frames) {
  if (!draft.frames) return;
  ShardIndex& index = draft.index;
  index.frames.assign(frames.begin(), frames.end());
  for (Extent& extent : index.extents) {
    if (!is_chunked(extent)) continue;
    extent.offset_bytes = index.frames[static_cast<std::size_t>(extent.first_frame)].offset_bytes;
  }
  const std::int64_t index_bytes = draft.header.index.end - draft.header.index.begin;
  describe_frames(file, path, index, index_bytes, *draft.frames);
  std::ranges::sort(index.extents, {}, order_of);
  number_blocks(index.extents);
  draft.header.file_bytes = file.size_bytes();
}

std::int64_t estimated_bytes(const ShardDraft& draft) {
  const auto index_bytes = static_cast<std::int64_t>(encode(draft.index).size());
  std::int64_t bytes = header_bytes + index_bytes + estimated_metadata_bytes(draft.index);
  // How much frames will have nobody knows; what compresses to nothing needs no room.
  for (const Extent& extent : draft.index.extents) {
    if (!is_chunked(extent)) bytes += extent.length_bytes;
  }
  return bytes;
}

Digest seal_shard(File& file, ShardDraft& draft, std::span<const Digest> block_crcs,
                  const SaveId& save_id) {
  draft.index.block_crcs.assign(block_crcs.begin(), block_crcs.end());
  draft.header.save_id = save_id;
  draft.header.sealed = true;
  write_tables(file, draft);
  return header_crc(encode(draft.header));
}

}  // namespace remesh::native
