#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "remesh/schema/catalog.hpp"
#include "remesh/store/extents.hpp"
#include "remesh/store/file_system.hpp"

namespace remesh {

/// Hears of every run of payload bytes that passes between memory and a file, with its true place.
/// Where they are compressed there are two things to hear of: frames, as they lie in the file, and
/// the elements that are unpacked from them or packed into them. Frames are numbered as
/// ExtentMap::all_frames() has them.
class Tap {
 public:
  using Bytes = std::span<const std::byte>;
  using OnStored = std::function<void(std::uint32_t file, std::int64_t offset, Bytes bytes)>;
  using OnFrame = std::function<void(std::int64_t number, const Frame& place, Digest digest)>;
  using OnUnpacked = std::function<void(std::int64_t number, std::int64_t within, Bytes bytes)>;

  /// Hears nothing.
  Tap() = default;

  /// Hears of what is not compressed alone: for ends that have no frames.
  template <typename Function>
  requires std::is_invocable_v<Function&, std::uint32_t, std::int64_t, Bytes> Tap(
      Function on_stored)
      : on_stored_(std::move(on_stored)) {}  // NOLINT(google-explicit-constructor)

  Tap(OnStored on_stored, OnFrame on_frame, OnUnpacked on_unpacked)
      : on_stored_(std::move(on_stored)),
        on_frame_(std::move(on_frame)),
        on_unpacked_(std::move(on_unpacked)) {}

  explicit operator bool() const noexcept { return static_cast<bool>(on_stored_); }

  void operator()(std::uint32_t file, std::int64_t offset, Bytes bytes) const {
    on_stored_(file, offset, bytes);
  }
  /// A frame at its place, and what the bytes that lie there hash to.
  void frame(std::int64_t number, const Frame& place, Digest digest) const {
    if (on_frame_) on_frame_(number, place, digest);
  }
  /// Elements of a chunk: `within` counts bytes from the chunk's first one.
  void unpacked(std::int64_t number, std::int64_t within, Bytes bytes) const {
    if (on_unpacked_) on_unpacked_(number, within, bytes);
  }

 private:
  OnStored on_stored_;
  OnFrame on_frame_;
  OnUnpacked on_unpacked_;
};

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

  /// Unpacks what read_bytes() gave of a frame of an extent in chunks, and whose CRC was checked,
  /// to a whole chunk (chunks.hpp). For judges. Throws Error(corrupt, RM207), with file and bytes,
  /// if it is no such frame.
  virtual void unpack(const Extent& extent, std::int64_t k, std::span<const std::byte> stored,
                      std::span<std::byte> into) const = 0;

  /// Lets it keep so many bytes of unpacked chunks for those who come back for the rest of one;
  /// default_kept_bytes where nobody says. A reader that keeps none need not listen.
  virtual void keep_unpacked(std::int64_t /*bytes*/) const {}
  static constexpr std::int64_t default_kept_bytes = std::int64_t{8} << 20;

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
  /// What it was opened from beside those: an index. Nobody reads it again but a seal's maker.
  struct OtherFile {
    std::string name;
    FileSystem::Path path;
    std::int64_t size_bytes = 0;
  };
  std::vector<OtherFile> others = {};
};

/// A Reader over parsed extents; all formats that keep packed boxes in files use this one. At most
/// 512 files are open at a time. `files` must outlive the reader.
std::unique_ptr<Reader> make_reader(const FileSystem& files, OpenCheckpoint checkpoint);

}  // namespace remesh
