#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "remesh/schema/catalog.hpp"
#include "remesh/store/extents.hpp"
#include "remesh/store/file_system.hpp"

namespace remesh {

/// Hears of every run of payload bytes that passes between memory and a file, with its true place.
using Tap =
    std::function<void(std::uint32_t file, std::int64_t offset, std::span<const std::byte> bytes)>;

/// The reading end of a checkpoint, in any format. Const members may be called from many threads.
class Reader {
 public:
  virtual ~Reader() = default;

  virtual const Catalog& catalog() const noexcept = 0;
  virtual const ExtentMap& extents() const noexcept = 0;

  /// Reads the elements of `box` of a tensor, packed, into `into`. Copy 0 is read where several are
  /// stored. `tap` may be empty.
  /// Throws Error(incomplete) if some element is nowhere; Error(io), Error(corrupt) as File does.
  virtual void read(std::size_t tensor, const Box& box, std::span<std::byte> into,
                    const Tap& tap) const = 0;

  /// Reads bytes of a file of extents().files() as they lie there. For judges and for guards.
  virtual void read_bytes(std::uint32_t file, std::int64_t offset,
                          std::span<std::byte> into) const = 0;

  /// The bytes of a side file. Throws Error(corrupt, RM207) if they do not have the recorded
  /// digest.
  virtual std::vector<std::byte> side(const SideFile& side) const = 0;
};

/// What a format's parser found out: all that a Reader needs. `paths` are those of
/// extents.files(), and the side files lie at `side_paths`, in catalog order.
struct OpenCheckpoint {
  Catalog catalog;
  ExtentMap extents;
  std::vector<FileSystem::Path> paths;
  std::vector<FileSystem::Path> side_paths;
};

/// A Reader over parsed extents; all formats that keep packed boxes in files use this one. At most
/// 512 files are open at a time. `files` must outlive the reader.
std::unique_ptr<Reader> make_reader(const FileSystem& files, OpenCheckpoint checkpoint);

}  // namespace remesh
