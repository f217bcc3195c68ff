// How fast zstd packs and unpacks when nothing else happens: what a compressed job is measured
// against. Chunks of 1 MiB are shuffled in memory beforehand; then so many threads do nothing but
// compress them, each into room of its own, and then decompress them.
//
//   compress_loops FILE ELEMENT_BYTES LEVEL THREADS [ours]
//
// With `ours`, zstd looks for matches as rarely as remesh lets it; otherwise as it does by itself.
//
// FILE is of safetensors, or raw little-endian elements. Up to 512 MiB of it are taken. Prints the
// MB/s of plain bytes to compress and to decompress, of all threads together by the clock on the
// wall, and plain bytes / compressed bytes: "812.3 2211.0 1.437".

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <functional>
#include <ios>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>
#define ZSTD_STATIC_LINKING_ONLY  // how rarely matches are looked for
#include <zstd.h>

#include "byte_shuffle.hpp"

namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t chunk_bytes = std::size_t{1} << 20;
constexpr std::size_t most_chunks = 512;

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

// A file of safetensors begins with the length of its header, which is text.
std::streamoff header_bytes(std::ifstream& file) {
  std::uint64_t length = 0;
  char brace = 0;
  file.read(reinterpret_cast<char*>(&length), sizeof length);
  file.get(brace);
  const bool headed = file.good() && brace == '{' && length < (std::uint64_t{1} << 30);
  file.clear();
  return headed ? static_cast<std::streamoff>(sizeof length + length) : 0;
}

std::vector<Bytes> shuffled_chunks(const std::string& path, std::size_t element_bytes) {
  std::ifstream file(path, std::ios::binary);
  require(file.good(), "cannot open the file");
  file.seekg(header_bytes(file));
  std::vector<Bytes> chunks;
  chunks.reserve(most_chunks);
  Bytes plain(chunk_bytes);
  while (chunks.size() < most_chunks &&
         file.read(reinterpret_cast<char*>(plain.data()), chunk_bytes)) {
    remesh::native::shuffle(plain, element_bytes, chunks.emplace_back(chunk_bytes));
  }
  require(!chunks.empty(), "the file has no whole chunk");
  return chunks;
}

std::size_t checked(std::size_t result) {
  require(ZSTD_isError(result) == 0, "zstd failed");
  return result;
}

// Plain MB/s of all threads: each takes the next chunk until there is none.
double speed(std::size_t count, int threads,
             const std::function<std::function<void(std::size_t)>()>& loop) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::function<void(std::size_t)>> loops;
  for (int thread = 0; thread < threads; ++thread) loops.push_back(loop());
  const auto begin = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> running;
    running.reserve(loops.size());
    for (const auto& step : loops) {
      running.emplace_back([&next, &step, count] {
        for (std::size_t at = next++; at < count; at = next++) step(at);
      });
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  return static_cast<double>(count * chunk_bytes) / 1e6 / seconds.count();
}

void set(ZSTD_CCtx* context, ZSTD_cParameter parameter, int value) {
  checked(ZSTD_CCtx_setParameter(context, parameter, value));
}

std::shared_ptr<ZSTD_CCtx> context_of(int level, bool ours) {
  std::shared_ptr<ZSTD_CCtx> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  set(context.get(), ZSTD_c_compressionLevel, level);
  if (ours) {
    set(context.get(), ZSTD_c_targetLength, 16);
    set(context.get(), ZSTD_c_literalCompressionMode, ZSTD_ps_enable);
  }
  return context;
}

void measure(const std::string& path, std::size_t element_bytes, int level, int threads,
             bool ours) {
  const std::vector<Bytes> chunks = shuffled_chunks(path, element_bytes);
  std::vector<Bytes> frames(chunks.size());
  for (Bytes& frame : frames) frame.resize(ZSTD_compressBound(chunk_bytes));
  std::vector<std::size_t> lengths(chunks.size());

  const double packing = speed(chunks.size(), threads, [&]() -> std::function<void(std::size_t)> {
    return [&, context = context_of(level, ours)](std::size_t at) {
      lengths[at] = checked(ZSTD_compress2(context.get(), frames[at].data(), frames[at].size(),
                                           chunks[at].data(), chunk_bytes));
    };
  });
  const double unpacking = speed(chunks.size(), threads, [&]() -> std::function<void(std::size_t)> {
    const std::shared_ptr<ZSTD_DCtx> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
    const auto plain = std::make_shared<Bytes>(chunk_bytes);
    return [&, context, plain](std::size_t at) {
      checked(ZSTD_decompressDCtx(context.get(), plain->data(), chunk_bytes, frames[at].data(),
                                  lengths[at]));
    };
  });
  std::size_t packed = 0;
  for (const std::size_t length : lengths) packed += length;
  std::printf("%.1f %.1f %.4f\n", packing, unpacking,
              static_cast<double>(chunks.size() * chunk_bytes) / static_cast<double>(packed));
}

}  // namespace

int main(int argc, char** argv) {
  const bool ours = argc == 6 && std::string_view(argv[5]) == "ours";
  if (argc != 5 && !ours) {
    std::fputs("usage: compress_loops FILE ELEMENT_BYTES LEVEL THREADS [ours]\n", stderr);
    return 2;
  }
  try {
    measure(argv[1], std::stoul(argv[2]), std::stoi(argv[3]), std::stoi(argv[4]), ours);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "compress_loops: %s\n", error.what());
    return 1;
  }
}
