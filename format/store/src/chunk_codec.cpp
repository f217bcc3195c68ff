// What a context takes is told by a part of zstd's interface that is not stable, but exported.
#define ZSTD_STATIC_LINKING_ONLY

#include "chunk_codec.hpp"

#include <algorithm>
#include <array>
#include <zstd.h>

#include <fmt/format.h>

#include "byte_shuffle.hpp"
#include "damage.hpp"
#include "little_endian.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/chunks.hpp"

namespace remesh::native {
namespace {

// Where zstd takes other parameters for a level: the sizes of chunks that need the most.
constexpr std::array<std::int64_t, 3> parameter_borders{16 << 10, 128 << 10, 256 << 10};

// The longest window is that which every decoder must have memory for (RFC 8878, 3.1.1.1.2). Ours
// needs none, as it sees the whole chunk; another reader of the same file does.
constexpr int most_window_log = 23;

constexpr std::size_t magic_bytes = 4;
constexpr std::size_t shortest_frame = 6;  // magic, descriptor, and window or size

// Weights hold nothing twice, and what looks like a match in them costs more than it saves. With
// this stride zstd's fastest strategy looks for matches at so few bytes that it finds the long ones
// alone: of normal bf16 weights it makes 2 % less in half the time, and they unpack faster too. It
// takes a stride as a wish not to pack literals either, which are all that can be packed here.
constexpr int fast_stride = 16;

bool is_fast(int level) {
  const auto chunk = static_cast<unsigned long long>(most_chunk_bytes);
  return ZSTD_getCParams(level, chunk, 0).strategy == ZSTD_fast;
}

void check_level(int level) {
  if (level >= least_level && level <= most_level) return;
  throw Error(Errc::invalid_argument,
              fmt::format("cannot compress with zstd at level {}: it has levels {} to {} here",
                          level, least_level, most_level));
}

[[noreturn]] void no_memory_for_zstd() {
  throw Error(Errc::out_of_memory,
              "cannot have zstd work on a chunk: the system has no memory left");
}

void grow(Buffer& buffer, std::size_t bytes) {
  const auto wanted = static_cast<std::int64_t>(bytes);
  if (buffer.size_bytes() >= wanted) return;
  buffer = {};  // before the new one is there
  buffer = Buffer(wanted);
}

void set(ZSTD_CCtx* context, ZSTD_cParameter parameter, int value) {
  const std::size_t result = ZSTD_CCtx_setParameter(context, parameter, value);
  if (ZSTD_isError(result) == 0) return;
  throw Error(Errc::internal,
              fmt::format("zstd refuses parameter {} = {}: {}", static_cast<int>(parameter), value,
                          ZSTD_getErrorName(result)));
}

std::size_t most_frame_bytes(std::size_t chunk_bytes) {
  return chunk_bytes * (100 - least_saving_percent) / 100;
}

int window_log(std::span<const std::byte> frame) {
  const auto descriptor = std::to_integer<unsigned>(frame[magic_bytes]);
  constexpr unsigned single_segment = 0x20;  // the window is the content
  if ((descriptor & single_segment) != 0) return 0;
  return 10 + static_cast<int>(std::to_integer<unsigned>(frame[magic_bytes + 1]) >> 3);
}

// All that can be known before a byte is written: what stands in the frame's header, and where its
// blocks end.
void check_frame(std::span<const std::byte> frame, std::size_t chunk_bytes) {
  if (frame.size() < shortest_frame ||
      load<std::uint32_t>(frame, 0) != std::uint32_t{ZSTD_MAGICNUMBER}) {
    damaged(fmt::format("the {} bytes of a chunk do not start as a zstd frame does", frame.size()));
  }
  const unsigned long long content = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (content == ZSTD_CONTENTSIZE_ERROR || content == ZSTD_CONTENTSIZE_UNKNOWN) {
    damaged(fmt::format(
        "the frame of a chunk does not say how many bytes it holds, but must say {}", chunk_bytes));
  }
  if (content != chunk_bytes) {
    damaged(fmt::format("the frame of a chunk says that it holds {} bytes, but the chunk has {}",
                        content, chunk_bytes));
  }
  if (const unsigned dictionary = ZSTD_getDictID_fromFrame(frame.data(), frame.size());
      dictionary != 0) {
    damaged(fmt::format("the frame of a chunk asks for dictionary {}, but must do with 0 (none)",
                        dictionary));
  }
  if (const int log = window_log(frame); log > most_window_log) {
    damaged(
        fmt::format("the frame of a chunk asks for a window of 2^{} bytes, but 2^{} are the most",
                    log, most_window_log));
  }
  const std::size_t length = ZSTD_findFrameCompressedSize(frame.data(), frame.size());
  if (ZSTD_isError(length) != 0) {
    damaged(fmt::format("the frame of a chunk is not whole within its {} bytes: zstd says: {}",
                        frame.size(), ZSTD_getErrorName(length)));
  }
  if (length != frame.size()) {
    damaged(fmt::format("the frame of a chunk ends after {} bytes, but {} are stored", length,
                        frame.size()));
  }
}

}  // namespace

// ---- Encoder

void Encoder::Free::operator()(ZSTD_CCtx_s* context) const noexcept { ZSTD_freeCCtx(context); }

Encoder::Encoder(int level) {
  check_level(level);
  context_.reset(ZSTD_createCCtx());
  if (!context_) no_memory_for_zstd();
  set(context_.get(), ZSTD_c_compressionLevel, level);
  if (is_fast(level)) {
    set(context_.get(), ZSTD_c_targetLength, fast_stride);
    set(context_.get(), ZSTD_c_literalCompressionMode, ZSTD_ps_enable);
  }
  set(context_.get(), ZSTD_c_contentSizeFlag, 1);
  set(context_.get(), ZSTD_c_checksumFlag, 0);
}

EncodedChunk Encoder::encode(std::span<const std::byte> chunk, std::size_t element_bytes) {
  std::span<const std::byte> plain = chunk;
  if (element_bytes > 1) {
    grow(shuffled_, chunk.size());
    shuffle(chunk, element_bytes, shuffled_.bytes().first(chunk.size()));
    plain = shuffled_.bytes().first(chunk.size());
  }
  // Room for the worst case: what zstd does with less depends on how much less.
  const std::size_t room = ZSTD_compressBound(chunk.size());
  grow(frame_, room);
  const std::size_t length =
      ZSTD_compress2(context_.get(), frame_.bytes().data(), room, plain.data(), plain.size());
  if (ZSTD_isError(length) != 0) no_memory_for_zstd();  // with this room nothing else is left
  if (length > most_frame_bytes(chunk.size())) return {chunk, /*raw=*/true};
  return {frame_.bytes().first(length), /*raw=*/false};
}

std::int64_t Encoder::needed_bytes(int level, std::int64_t most_chunk_bytes) {
  check_level(level);
  std::size_t context = 0;
  const auto take = [&](std::int64_t chunk_bytes) {
    const ZSTD_compressionParameters parameters = ZSTD_getCParams(
        level, static_cast<unsigned long long>(std::max<std::int64_t>(chunk_bytes, 1)), 0);
    context = std::max(context, ZSTD_estimateCCtxSize_usingCParams(parameters));
  };
  for (const std::int64_t border : parameter_borders) take(std::min(border, most_chunk_bytes));
  take(most_chunk_bytes);
  const auto chunk = static_cast<std::size_t>(most_chunk_bytes);
  return static_cast<std::int64_t>(context + ZSTD_compressBound(chunk) + chunk);
}

std::int64_t Encoder::held_bytes() const noexcept {
  return static_cast<std::int64_t>(ZSTD_sizeof_CCtx(context_.get())) + shuffled_.size_bytes() +
         frame_.size_bytes();
}

// ---- Decoder

void Decoder::Free::operator()(ZSTD_DCtx_s* context) const noexcept { ZSTD_freeDCtx(context); }

Decoder::Decoder() : context_(ZSTD_createDCtx()) {
  if (!context_) no_memory_for_zstd();
}

void Decoder::decode(std::span<const std::byte> stored, bool raw, std::size_t element_bytes,
                     std::span<std::byte> into) {
  if (raw) {
    if (stored.size() != into.size()) {
      damaged(fmt::format("a chunk that is stored as it is has {} bytes, but must have {}",
                          stored.size(), into.size()));
    }
    std::ranges::copy(stored, into.begin());
    return;
  }
  check_frame(stored, into.size());
  const bool shuffled = element_bytes > 1;
  if (shuffled) grow(shuffled_, into.size());
  const std::span<std::byte> plain = shuffled ? shuffled_.bytes().first(into.size()) : into;
  const std::size_t length =
      ZSTD_decompressDCtx(context_.get(), plain.data(), plain.size(), stored.data(), stored.size());
  if (length != into.size()) {  // an error, which is a very large length
    damaged(
        fmt::format("the frame of {} bytes that holds a chunk of {} cannot be read: zstd says: {}",
                    stored.size(), into.size(), ZSTD_getErrorName(length)));
  }
  if (shuffled) unshuffle(plain, element_bytes, into);
}

std::int64_t Decoder::needed_bytes(std::int64_t most_chunk_bytes) {
  return static_cast<std::int64_t>(ZSTD_estimateDCtxSize()) + most_chunk_bytes;
}

std::int64_t Decoder::held_bytes() const noexcept {
  return static_cast<std::int64_t>(ZSTD_sizeof_DCtx(context_.get())) + shuffled_.size_bytes();
}

}  // namespace remesh::native
