#include "repair_shard.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "damage.hpp"
#include "little_endian.hpp"
#include "remesh/core/error.hpp"
#include "repair_burst.hpp"
#include "shard_reader.hpp"

namespace remesh::native {
namespace {

constexpr std::int64_t step = ExtentMap::block_bytes;

class Examination {
 public:
  Examination(const FileSystem& files, ShardState& state) : files_(files), state_(state) {}

  void run();

 private:
  void give_up(const char* id, std::string why);
  bool find();
  bool read_header();
  bool mend_header(std::span<std::byte> block);
  bool read_index();
  bool check_complement();
  bool undo_in_complement(std::span<const ByteRange> ranges, Digest found);
  Digest hash(std::span<const ByteRange> ranges) const;
  void mended(const Burst& burst, std::int64_t offset, const char* what);
  void patch(std::int64_t offset, std::span<const std::byte> bytes) {
    state_.patches.push_back({offset, {bytes.begin(), bytes.end()}});
  }

  const FileSystem& files_;
  ShardState& state_;
  std::unique_ptr<File> file_;
};

// Whatever was mended so far does not matter: the shard is made anew.
void Examination::give_up(const char* id, std::string why) {
  state_.id = id;
  state_.why_remake = std::move(why);
  state_.mends.clear();
  state_.patches.clear();
}

void Examination::mended(const Burst& burst, std::int64_t offset, const char* what) {
  state_.mends.push_back({.file = state_.name,
                          .bytes = bytes_of_burst(burst, offset),
                          .by = MendedBy::flip,
                          .how = fmt::format("{} ({})", flipped_back(burst, offset), what)});
}

bool Examination::find() {
  const auto entry = files_.look(state_.path);
  if (!entry) {
    give_up("RM203", "it is not there");
    return false;
  }
  file_ = files_.open(state_.path);
  state_.found_bytes = file_->size_bytes();
  if (state_.found_bytes > state_.entry.size_bytes) {
    state_.mends.push_back({.file = state_.name,
                            .bytes = {state_.entry.size_bytes, state_.found_bytes},
                            .by = MendedBy::cut,
                            .how = "left out: it was appended"});
  }
  if (state_.found_bytes >= header_bytes) return true;
  give_up("RM202", fmt::format("it has {} bytes, but manifest.json records {}", state_.found_bytes,
                               state_.entry.size_bytes));
  return false;
}

// The manifest has the CRC of the header as well, so it does not matter what the header says of it.
bool Examination::mend_header(std::span<std::byte> block) {
  const auto body = block.first(header_field::header_crc);
  if (header_crc(block) != state_.entry.header_crc) {
    const auto burst = undo_burst(body, state_.entry.header_crc);
    if (!burst) return false;
    mended(*burst, 0, "header");
  }
  if (load<std::uint64_t>(block, header_field::header_crc) != state_.entry.header_crc.value) {
    store(block, header_field::header_crc, state_.entry.header_crc.value);
    state_.mends.push_back(
        {.file = state_.name,
         .bytes = {static_cast<std::int64_t>(header_field::header_crc), header_bytes},
         .by = MendedBy::record,
         .how = "the header's CRC is written again"});
  }
  patch(0, block);
  return true;
}

bool Examination::read_header() {
  std::vector<std::byte> block(static_cast<std::size_t>(header_bytes));
  file_->read_at(0, block);
  if (!mend_header(block)) {
    give_up("RM207", fmt::format("its header hashes to {}, but manifest.json records {}",
                                 to_string(header_crc(block)), to_string(state_.entry.header_crc)));
    return false;
  }
  state_.header = parse_header(block);
  if (state_.header->file_bytes != state_.entry.size_bytes) {
    damaged(fmt::format("its header says that it has {} bytes, manifest.json {}",
                        state_.header->file_bytes, state_.entry.size_bytes));
  }
  return true;
}

bool Examination::read_index() {
  const ByteRange range = state_.header->index;
  if (state_.found_bytes < range.end) {
    give_up("RM202", fmt::format("it has {} bytes, but its index ends at {}", state_.found_bytes,
                                 range.end));
    return false;
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(range.end - range.begin));
  file_->read_at(range.begin, bytes);
  if (const Digest found = digest_of(bytes); found != state_.header->index_crc) {
    const auto burst = undo_burst(bytes, state_.header->index_crc);
    if (!burst) {
      give_up("RM207", fmt::format("its index hashes to {}, but its header records {}",
                                   to_string(found), to_string(state_.header->index_crc)));
      return false;
    }
    mended(*burst, range.begin, "index");
    patch(range.begin, bytes);
  }
  state_.take_index(parse_index(bytes, *state_.header));
  return true;
}

Digest Examination::hash(std::span<const ByteRange> ranges) const {
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(step, state_.entry.size_bytes)));
  Digest digest;
  for (const ByteRange& range : ranges) {
    for (std::int64_t at = range.begin; at < range.end; at += step) {
      const auto part =
          std::span(buffer).first(static_cast<std::size_t>(std::min(step, range.end - at)));
      file_->read_at(at, part);
      overlay(state_.patches, at, part);
      digest = extend(digest, part);
    }
  }
  return digest;
}

// The place in the file of byte `at` of the ranges taken together.
std::int64_t place_in(std::span<const ByteRange> ranges, std::int64_t at) {
  for (const ByteRange& range : ranges) {
    if (at < range.end - range.begin) return range.begin + at;
    at -= range.end - range.begin;
  }
  return -1;
}

bool Examination::undo_in_complement(std::span<const ByteRange> ranges, Digest found) {
  std::int64_t length = 0;
  for (const ByteRange& range : ranges) length += range.end - range.begin;
  if (length > most_searched_bytes) return false;
  const auto burst = locate_burst(state_.header->complement_crc, found, length);
  if (!burst) return false;
  const ByteRange touched = bytes_of_burst(*burst, 0);
  std::vector<std::byte> bits(static_cast<std::size_t>(touched.end - touched.begin));
  flip({burst->first_bit % 8, burst->pattern}, bits);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    const std::int64_t at = place_in(ranges, touched.begin + static_cast<std::int64_t>(i));
    // The index has its CRC already: what lies in it is no damage.
    if (at >= state_.header->index.begin && at < state_.header->index.end) return false;
    std::array<std::byte, 1> byte{};
    file_->read_at(at, byte);
    byte[0] ^= bits[i];
    patch(at, byte);
  }
  mended(*burst, place_in(ranges, touched.begin) - touched.begin, "HDF5 metadata or a gap");
  return true;
}

bool Examination::check_complement() {
  const auto ranges = complement(state_.entry.size_bytes, *state_.index);
  const auto give_up_on = [&](Digest found) {
    give_up("RM207",
            fmt::format("its HDF5 metadata, gaps and index hash to {}, but its header records {}",
                        to_string(found), to_string(state_.header->complement_crc)));
    return false;
  };
  if (!ranges.empty() && ranges.back().end > state_.found_bytes) {
    give_up("RM202", fmt::format("it has {} bytes, but manifest.json records {}",
                                 state_.found_bytes, state_.entry.size_bytes));
    return false;
  }
  const Digest found = hash(ranges);
  if (found == state_.header->complement_crc) return true;
  if (!undo_in_complement(ranges, found)) return give_up_on(found);
  return hash(ranges) == state_.header->complement_crc || give_up_on(found);
}

// A medium that does not give its bytes back has lost them. What this user may not read is not
// lost.
void Examination::run() {
  try {
    if (!find()) return;
    if (read_header() && read_index()) check_complement();
  } catch (const Error& error) {
    if (error.code() != Errc::io || error.id() == "RM706") throw;
    give_up("RM703", error.what());
  }
}

}  // namespace

void overlay(std::span<const Patch> patches, std::int64_t offset, std::span<std::byte> bytes) {
  const std::int64_t end = offset + std::ssize(bytes);
  for (const Patch& patch : patches) {
    const std::int64_t first = std::max(offset, patch.offset_bytes);
    const std::int64_t last = std::min(end, patch.offset_bytes + std::ssize(patch.bytes));
    if (first >= last) continue;
    std::copy_n(patch.bytes.begin() + (first - patch.offset_bytes), last - first,
                bytes.begin() + (first - offset));
  }
}

void ShardState::take_index(ShardIndex taken) {
  index = std::move(taken);
  extents = index->extents;
  for (Extent& extent : extents) extent.tensor = index->tensors[extent.tensor].number;
}

BlockPlace place_of_block(const ShardIndex& index, const Extent& extent, std::int64_t k) {
  if (is_chunked(extent)) {
    const Frame& frame = index.frames[static_cast<std::size_t>(extent.first_frame + k)];
    return {frame.offset_bytes, frame.length_bytes};
  }
  const std::int64_t begin = k * ExtentMap::block_bytes;
  return {extent.offset_bytes + begin,
          std::min(ExtentMap::block_bytes, extent.length_bytes - begin)};
}

Digest recorded_crc(const ShardState& shard, const Extent& extent, std::int64_t k) {
  return shard.index->block_crcs[static_cast<std::size_t>(extent.first_block + k)];
}

ShardState examine_shard(const FileSystem& files, const FileSystem::Path& root,
                         const ShardEntry& entry, Index ranks) {
  ShardState state;
  state.entry = entry;
  state.name = shard_name(entry.rank, ranks);
  state.path = root / state.name;
  Examination(files, state).run();
  return state;
}

}  // namespace remesh::native
