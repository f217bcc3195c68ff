#include "shard_reader.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "damage.hpp"
#include "little_endian.hpp"
#include "remesh/core/error.hpp"

namespace remesh::native {
namespace {

std::int64_t load_size(std::span<const std::byte> block, std::size_t offset, const char* what) {
  const auto value = load<std::uint64_t>(block, offset);
  if (value > static_cast<std::uint64_t>(INT64_MAX)) {
    damaged(fmt::format("its header gives {} as {}", what, value));
  }
  return static_cast<std::int64_t>(value);
}

bool all_zeros(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte value) { return value == std::byte{0}; });
}

void check_block(std::span<const std::byte> block) {
  if (all_zeros(block)) damaged("it has zeros in place of its header", "RM212");
  if (std::memcmp(block.data(), magic.data(), magic.size()) != 0) {
    damaged("it does not start as a remesh shard does", "RM207");
  }
  const Digest found = header_crc(block);
  const Digest recorded{load<std::uint64_t>(block, header_field::header_crc)};
  if (found != recorded) {
    damaged(fmt::format("its header hashes to {}, but it records {}; the header is damaged",
                        to_string(found), to_string(recorded)));
  }
  const auto version = load<std::uint32_t>(block, header_field::version);
  if (version != format_version) {
    damaged(version_refusal(std::to_string(version)), "RM102");
  }
  if (!all_zeros(block.subspan(header_field::end, header_field::header_crc - header_field::end))) {
    damaged("reserved bytes of its header are not zero");
  }
}

ByteRange load_index_range(std::span<const std::byte> block, std::int64_t file_bytes) {
  const std::int64_t offset = load_size(block, header_field::index_offset, "the index offset");
  const std::int64_t bytes = load_size(block, header_field::index_bytes, "the index size");
  if (bytes > most_index_bytes) {
    damaged(fmt::format("its index has {} bytes, but at most {} are read", bytes, most_index_bytes),
            "RM605");
  }
  if (bytes < static_cast<std::int64_t>(index_counts_bytes) || offset < header_bytes ||
      offset > file_bytes || bytes > file_bytes - offset) {
    damaged(fmt::format("its header places an index of {} bytes at {}, but it has {} bytes", bytes,
                        offset, file_bytes));
  }
  return {offset, offset + bytes};
}

// Runs one parser; turns what it throws into a finding about its bytes.
template <typename Parse>
auto judged(const FileSystem::Path& path, const std::string& name, ByteRange bytes,
            Findings& findings, Parse&& parse) -> std::optional<decltype(parse())> {
  try {
    return parse();
  } catch (const Error& error) {
    Finding finding;
    finding.id = error.id().empty() ? "RM703" : error.id();
    // What the file system throws names the path; what a parser throws does not.
    const std::string_view reason = error.what();
    finding.message = reason.starts_with("cannot ")
                          ? std::string(reason)
                          : fmt::format("cannot read '{}': {}", path.string(), reason);
    finding.file = name;
    finding.bytes = bytes;
    findings.add(std::move(finding));
    return std::nullopt;
  }
}

std::vector<std::byte> read_index_bytes(const File& file, const ShardHeader& header) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(header.index.end - header.index.begin));
  file.read_at(header.index.begin, bytes);
  const Digest found = digest_of(bytes);
  if (found != header.index_crc) {
    damaged(fmt::format("its index hashes to {}, but its header records {}; the index is damaged",
                        to_string(found), to_string(header.index_crc)));
  }
  return bytes;
}

}  // namespace

ShardHeader parse_header(std::span<const std::byte> block) {
  check_block(block);
  ShardHeader header;
  const auto state = load<std::uint32_t>(block, header_field::state);
  if (state > 1) damaged(fmt::format("its header has state {}", state));
  header.sealed = state == 1;
  header.file_bytes = load_size(block, header_field::file_bytes, "the file size");
  header.index = load_index_range(block, header.file_bytes);
  header.index_crc = {load<std::uint64_t>(block, header_field::index_crc)};
  header.complement_crc = {load<std::uint64_t>(block, header_field::complement_crc)};
  header.rank = load<std::uint32_t>(block, header_field::rank);
  header.ranks = load<std::uint32_t>(block, header_field::ranks);
  if (header.rank >= header.ranks) {
    damaged(fmt::format("its header says that it is rank {} of {}", header.rank, header.ranks));
  }
  std::ranges::copy(block.subspan(header_field::save_id, header.save_id.size()),
                    header.save_id.begin());
  return header;
}

std::optional<ReadHeader> read_header(const File& file, const FileSystem::Path& path,
                                      const std::string& name, Findings& findings) {
  return judged(path, name, {0, header_bytes}, findings, [&] {
    std::vector<std::byte> block(static_cast<std::size_t>(header_bytes));
    file.read_at(0, block);
    return ReadHeader{parse_header(block), header_crc(block)};
  });
}

std::optional<ShardIndex> read_index(const File& file, const ShardHeader& header,
                                     const FileSystem::Path& path, const std::string& name,
                                     Findings& findings) {
  return judged(path, name, header.index, findings,
                [&] { return parse_index(read_index_bytes(file, header), header); });
}

}  // namespace remesh::native
