// What compressing chunks costs and saves, on real weights: ratio and speed of each codec, one
// thread, as a table in Markdown. The speeds are bytes of the plain chunk a second of processor
// time, which is not that of other programs.
//
//   codec FILE:ELEMENT_BYTES...
//
// A file is raw little-endian elements, or one of safetensors, whose header is left out. It is cut
// into chunks of 1 MiB and taken again and again until there are 64 MiB in touched memory; a
// figure is the median of 5 passes over these.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <ios>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#include <zlib.h>

#include "byte_shuffle.hpp"
#include "chunk_codec.hpp"
#include "little_endian.hpp"

namespace {

using namespace remesh::native;

using Bytes = std::vector<std::byte>;

constexpr std::size_t most_chunk_bytes = std::size_t{1} << 20;
constexpr std::size_t least_bytes = std::size_t{64} << 20;
constexpr std::size_t num_passes = 5;

struct Stored {
  Bytes bytes;
  bool raw = false;
};

// A way to store a chunk. `encode` may leave the room that it got in `to`.
struct Codec {
  std::string name;
  std::function<void(std::span<const std::byte> chunk, Stored& to)> encode;
  std::function<void(const Stored& from, std::span<std::byte> chunk)> decode;
};

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

Codec plain_copy() {
  return {"memcpy",
          [](std::span<const std::byte> chunk, Stored& to) {
            to.bytes.resize(chunk.size());
            std::memcpy(to.bytes.data(), chunk.data(), chunk.size());
          },
          [](const Stored& from, std::span<std::byte> chunk) {
            std::memcpy(chunk.data(), from.bytes.data(), chunk.size());
          }};
}

Codec shuffle_alone(std::size_t element_bytes) {
  return {"shuffle",
          [=](std::span<const std::byte> chunk, Stored& to) {
            to.bytes.resize(chunk.size());
            shuffle(chunk, element_bytes, to.bytes);
          },
          [=](const Stored& from, std::span<std::byte> chunk) {
            unshuffle(from.bytes, element_bytes, chunk);
          }};
}

// Elements of one byte are not shuffled.
Codec zstd(std::string name, int level, std::size_t element_bytes) {
  const auto encoder = std::make_shared<Encoder>(level);
  const auto decoder = std::make_shared<Decoder>();
  return {std::move(name),
          [=](std::span<const std::byte> chunk, Stored& to) {
            const EncodedChunk encoded = encoder->encode(chunk, element_bytes);
            to.raw = encoded.raw;
            to.bytes.assign(encoded.bytes.begin(), encoded.bytes.end());
          },
          [=](const Stored& from, std::span<std::byte> chunk) {
            decoder->decode(from.bytes, from.raw, element_bytes, chunk);
          }};
}

Bytef* zlib_bytes(std::byte* bytes) { return reinterpret_cast<Bytef*>(bytes); }
const Bytef* zlib_bytes(const std::byte* bytes) { return reinterpret_cast<const Bytef*>(bytes); }

Codec shuffled_zlib(std::string name, int level, std::size_t element_bytes) {
  const auto scratch = std::make_shared<Bytes>(most_chunk_bytes);
  return {std::move(name),
          [=](std::span<const std::byte> chunk, Stored& to) {
            shuffle(chunk, element_bytes, std::span(*scratch).first(chunk.size()));
            uLongf length = compressBound(chunk.size());
            to.bytes.resize(length);
            require(compress2(zlib_bytes(to.bytes.data()), &length, zlib_bytes(scratch->data()),
                              chunk.size(), level) == Z_OK,
                    "zlib cannot compress a chunk");
            to.bytes.resize(length);
          },
          [=](const Stored& from, std::span<std::byte> chunk) {
            uLongf length = chunk.size();
            require(uncompress(zlib_bytes(scratch->data()), &length, zlib_bytes(from.bytes.data()),
                               from.bytes.size()) == Z_OK,
                    "zlib cannot read a chunk");
            unshuffle(std::span(*scratch).first(chunk.size()), element_bytes, chunk);
          }};
}

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream stream;
  stream.exceptions(std::ios::badbit | std::ios::failbit);
  stream.open(path, std::ios::binary);
  Bytes bytes(std::filesystem::file_size(path));
  stream.read(reinterpret_cast<char*>(bytes.data()), std::ssize(bytes));
  if (path.extension() == ".safetensors") {
    require(bytes.size() >= 8, "a file of safetensors is too short");
    const auto header = load<std::uint64_t>(bytes, 0);
    require(header <= bytes.size() - 8, "a file of safetensors is too short");
    bytes.erase(bytes.begin(), bytes.begin() + 8 + static_cast<std::ptrdiff_t>(header));
  }
  require(!bytes.empty(), "a file is empty");
  return bytes;
}

// The chunks of a file one behind the other, as often as it takes.
struct Chunks {
  Bytes bytes;
  std::vector<std::size_t> ends;
};

Chunks cut(const Bytes& file, std::size_t element_bytes) {
  const std::size_t step = most_chunk_bytes / element_bytes * element_bytes;
  Chunks chunks;
  chunks.bytes.reserve(least_bytes + file.size());
  while (chunks.bytes.size() < least_bytes) {
    const std::size_t base = chunks.bytes.size();
    chunks.bytes.insert(chunks.bytes.end(), file.begin(), file.end());
    for (std::size_t end = step; end < file.size(); end += step) chunks.ends.push_back(base + end);
    chunks.ends.push_back(chunks.bytes.size());
  }
  return chunks;
}

template <typename Pass>
double median_seconds(const Pass& pass) {
  std::array<double, num_passes> seconds{};
  pass();  // touches the memory
  for (double& each : seconds) {
    const std::clock_t begin = std::clock();
    pass();
    each = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  }
  std::ranges::sort(seconds);
  return seconds[num_passes / 2];
}

void measure(const Codec& codec, const Chunks& chunks, const std::string& file) {
  std::vector<Stored> stored(chunks.ends.size());
  Bytes back(chunks.bytes.size());
  const auto chunk_of = [&](auto& bytes, std::size_t i) {
    const std::size_t begin = i == 0 ? 0 : chunks.ends[i - 1];
    return std::span(bytes).subspan(begin, chunks.ends[i] - begin);
  };
  const double encode = median_seconds([&] {
    for (std::size_t i = 0; i < stored.size(); ++i)
      codec.encode(chunk_of(chunks.bytes, i), stored[i]);
  });
  const double decode = median_seconds([&] {
    for (std::size_t i = 0; i < stored.size(); ++i) codec.decode(stored[i], chunk_of(back, i));
  });
  require(back == chunks.bytes, "a codec does not give back what it got");

  std::size_t stored_bytes = 0;
  for (const Stored& each : stored) stored_bytes += each.bytes.size();
  const auto plain_bytes = static_cast<double>(chunks.bytes.size());
  std::printf("| %s | %s | %.3f | %.0f | %.0f |\n", file.c_str(), codec.name.c_str(),
              plain_bytes / static_cast<double>(stored_bytes), plain_bytes / encode / 1e6,
              plain_bytes / decode / 1e6);
  std::fflush(stdout);
}

void measure_all(const std::string& argument) {
  const std::size_t colon = argument.rfind(':');
  require(colon != std::string::npos, "an argument is no FILE:ELEMENT_BYTES");
  const std::filesystem::path path = argument.substr(0, colon);
  const std::size_t element_bytes = std::stoul(argument.substr(colon + 1));
  require(element_bytes >= 1 && element_bytes <= most_chunk_bytes, "elements have no such size");
  const Chunks chunks = cut(read_file(path), element_bytes);
  const std::string name = (path.parent_path().filename() / path.filename()).string();
  const std::array codecs{plain_copy(),
                          shuffle_alone(element_bytes),
                          zstd("shuffle, zstd 1", 1, element_bytes),
                          zstd("shuffle, zstd 3", 3, element_bytes),
                          zstd("zstd 1", 1, 1),
                          shuffled_zlib("shuffle, zlib 1", 1, element_bytes),
                          shuffled_zlib("shuffle, zlib 6", 6, element_bytes)};
  for (const Codec& codec : codecs) measure(codec, chunks, name);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s FILE:ELEMENT_BYTES...\n", argv[0]);
    return 2;
  }
  try {
    std::puts("| file | codec | ratio | MB/s in | MB/s out |\n|---|---|---:|---:|---:|");
    for (int i = 1; i < argc; ++i) measure_all(argv[i]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
