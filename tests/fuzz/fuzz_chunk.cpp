// A stored chunk, any bytes: refused with an id, or read; and what is read is stored again and read
// to the same bytes.
//
// The input is: how a chunk is stored (1: as it is), the size of its elements, the size of the
// chunk in 2 bytes, and what is stored.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "chunk_codec.hpp"
#include "little_endian.hpp"
#include "remesh/core/error.hpp"

namespace {

using namespace remesh;
using namespace remesh::native;

constexpr std::size_t head_bytes = 4;

void require(bool condition) {
  if (!condition) std::abort();
}

void check_stored_again(std::span<const std::byte> chunk, std::size_t element_bytes) {
  static Encoder encoder(1);
  static Decoder decoder;
  const EncodedChunk encoded = encoder.encode(chunk, element_bytes);
  std::vector<std::byte> again(chunk.size());
  decoder.decode(encoded.bytes, encoded.raw, element_bytes, again);
  require(std::ranges::equal(again, chunk));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  if (size < head_bytes) return 0;
  const bool raw = input[0] == std::byte{1};
  const auto element_bytes = std::max<std::size_t>(1, std::to_integer<std::size_t>(input[1]));
  std::vector<std::byte> chunk(load<std::uint16_t>(input, 2));
  // One that has read anything before must read as a new one does.
  static Decoder decoder;
  try {
    decoder.decode(input.subspan(head_bytes), raw, element_bytes, chunk);
  } catch (const Error& error) {
    require(error.id() == "RM207");
    return 0;
  }
  check_stored_again(chunk, element_bytes);
  return 0;
}
