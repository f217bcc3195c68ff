#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "remesh/store/file_system.hpp"
#include "shard_format.hpp"

namespace remesh::native {

/// The parsers of a shard's two tables. They take any bytes: what is wrong with them is thrown as
/// Error with an id, and a message that says what was found, but not where.

/// Checks the CRC before anything else. Precondition: `header_bytes` bytes.
ShardHeader parse_header(std::span<const std::byte> block);

/// Checks everything but the CRC: that the columns fill the index exactly, and that the extents lie
/// in the file, do not overlap each other or the index, and are as long as their boxes say.
ShardIndex parse_index(std::span<const std::byte> bytes, const ShardHeader& header);

/// Reads and checks the header block of a shard. `path` is for messages, `name` for findings.
/// Returns nothing only if `findings` returned from an error.
struct ReadHeader {
  ShardHeader header;
  Digest crc;
};
std::optional<ReadHeader> read_header(const File& file, const FileSystem::Path& path,
                                      const std::string& name, Findings& findings);

/// Reads and checks the index that a header describes. Otherwise as read_header.
std::optional<ShardIndex> read_index(const File& file, const ShardHeader& header,
                                     const FileSystem::Path& path, const std::string& name,
                                     Findings& findings);

}  // namespace remesh::native
