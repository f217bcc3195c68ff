#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "remesh/store/reader.hpp"

namespace remesh {

/// Where an extent reader gets its bytes from. All are called from many threads, and throw as File
/// does. A side file goes by its number in the catalog.
struct ByteSource {
  std::function<void(std::uint32_t file, std::int64_t offset, std::span<std::byte> into)> read;
  std::function<std::int64_t(std::size_t side)> side_bytes;
  std::function<void(std::size_t side, std::span<std::byte> into)> read_side;
};

/// A Reader of the bytes that an extent map describes, wherever they are.
std::unique_ptr<Reader> make_extent_reader(Catalog catalog, ExtentMap extents, ByteSource source);

}  // namespace remesh
