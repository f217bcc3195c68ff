// Header and index of a shard, any bytes: refused with an id, or read; and what is read is written
// to the same bytes.
//
// The input is the fields of the header block, then the index. The header's CRC is put right, since
// no mutation would ever meet it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "little_endian.hpp"
#include "remesh/core/error.hpp"
#include "shard_reader.hpp"
#include "shard_writer.hpp"

namespace {

using namespace remesh;
using namespace remesh::native;

void require(bool condition) {
  if (!condition) std::abort();
}

// Where the input's own header is refused, the index is judged against this one.
ShardHeader parse_block(std::span<const std::byte> fields) {
  std::vector<std::byte> block(static_cast<std::size_t>(header_bytes));
  std::ranges::copy(fields, block.begin());
  const Digest crc = digest_of(std::span(block).first(header_field::header_crc));
  store(std::span(block), header_field::header_crc, crc.value);
  try {
    const ShardHeader header = parse_header(block);
    require(encode(header) == block);
    return header;
  } catch (const Error& error) {
    require(!error.id().empty());
    ShardHeader header;
    header.file_bytes = std::int64_t{1} << 40;
    header.index = {header_bytes, 2 * header_bytes};
    return header;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  const std::size_t fields = std::min(size, header_field::end);
  const ShardHeader header = parse_block(input.first(fields));
  const auto bytes = input.subspan(fields);
  try {
    const ShardIndex index = parse_index(bytes, header);
    require(std::ranges::equal(encode(index), bytes));
    const auto rest = complement(header.file_bytes, index);
    require(rest.empty() || rest.back().end <= header.file_bytes);
  } catch (const Error& error) {
    require(!error.id().empty());
  }
  return 0;
}
