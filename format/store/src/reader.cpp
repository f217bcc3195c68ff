#include "remesh/store/reader.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "extent_reader.hpp"
#include "frame_reader.hpp"
#include "remesh/core/buffer.hpp"
#include "remesh/core/error.hpp"
#include "remesh/schema/runs.hpp"
#include "remesh/store/chunks.hpp"

namespace remesh {
namespace {

std::size_t as_size(std::int64_t value) { return static_cast<std::size_t>(value); }

// A request and an extent that has some of it: both boxes with elements of whole bytes.
struct Common {
  const Extent& extent;
  DType dtype;
  Box extent_box;
  Box wanted;
};

// Reads the common part in as few stretches as lie together in the file: into place where they lie
// together in the request as well, otherwise through a scratch buffer.
class PartReader {
 public:
  static constexpr std::int64_t scratch_bytes = std::int64_t{1} << 20;

  PartReader(const ByteSource& source, FrameReader& frames, const Tap& tap,
             std::int64_t element_bytes, std::span<std::byte> into)
      : source_(source), frames_(frames), tap_(tap), element_bytes_(element_bytes), into_(into) {}

  // The same of an extent in chunks, chunk by chunk. Those that another is just unpacking come
  // last, with read_awaited.
  void read_chunks(const Common& common, const Box& part) {
    const std::int64_t width = element_bytes_;
    const auto byte_of = [&](const Box& corner) {
      return *contiguous_in(common.extent_box, corner, width);
    };
    Box first = part;
    Box last = part;
    for (int dim = 0; dim < part.ndim(); ++dim) {
      first[dim] = {part[dim].begin, part[dim].begin + 1};
      last[dim] = {part[dim].end - 1, part[dim].end};
    }
    const DType dtype = common.dtype;
    const std::int64_t end = chunk_at(dtype, common.extent, byte_of(last)) + 1;
    for (std::int64_t k = chunk_at(dtype, common.extent, byte_of(first)); k < end; ++k) {
      const Box chunk_box_here = chunk_box(common.extent, k);
      const auto shared = intersect(chunk_box_here, part);
      if (!shared) continue;
      const FromChunk from{common.extent, k, chunk_box_here, *shared, common.wanted};
      if (const FrameReader::Chunk chunk = frames_.chunk_unless_awaited(common.extent, k)) {
        copy(from, chunk->bytes());
      } else {
        awaited_.push_back(from);
      }
    }
  }

  void read_awaited() {
    for (const FromChunk& from : awaited_) copy(from, frames_.chunk(from.extent, from.k)->bytes());
    awaited_.clear();
  }

  void read(const Common& common, const Box& part) {
    const auto from = contiguous_in(common.extent_box, part, element_bytes_);
    const auto to = contiguous_in(common.wanted, part, element_bytes_);
    const std::int64_t bytes = part.num_elements() * element_bytes_;
    if (from && to) {
      read_stretch(common.extent, *from, into_.subspan(as_size(*to), as_size(bytes)));
    } else if (from && bytes <= scratch_bytes) {
      if (scratch_.size_bytes() < bytes) scratch_ = Buffer(bytes);
      read_stretch(common.extent, *from, scratch_.bytes().first(as_size(bytes)));
      copy_box(part, part, scratch_.bytes().data(), common.wanted, into_.data(), element_bytes_);
    } else {
      read_slabs(common, part, from ? scratch_bytes : 0);
    }
  }

 private:
  struct FromChunk {
    const Extent& extent;
    std::int64_t k;
    Box chunk;
    Box part;
    Box wanted;
  };

  void copy(const FromChunk& from, std::span<const std::byte> bytes) {
    copy_box(from.part, from.chunk, bytes.data(), from.wanted, into_.data(), element_bytes_);
    if (tap_) tell(from.extent.first_frame + from.k, from.chunk, from.part, bytes);
  }

  // Tells the tap of a part of a chunk, run by run.
  void tell(std::int64_t frame, const Box& chunk, const Box& part,
            std::span<const std::byte> bytes) {
    if (const auto at = contiguous_in(chunk, part, element_bytes_)) {
      tap_.unpacked(frame, *at,
                    bytes.subspan(as_size(*at), as_size(part.num_elements() * element_bytes_)));
      return;
    }
    int dim = 0;
    while (part[dim].size() == 1) ++dim;
    Box slab = part;
    for (Index at = part[dim].begin; at < part[dim].end; ++at) {
      slab[dim] = {at, at + 1};
      tell(frame, chunk, slab, bytes);
    }
  }

  // Cuts the part along its outermost dim, into slabs of at most `most_bytes` or one index.
  void read_slabs(const Common& common, const Box& part, std::int64_t most_bytes) {
    int dim = 0;
    while (part[dim].size() == 1) ++dim;
    const std::int64_t index_bytes = part.num_elements() / part[dim].size() * element_bytes_;
    const Index step = std::max(Index{1}, most_bytes / index_bytes);
    Box slab = part;
    for (Index at = part[dim].begin; at < part[dim].end; at += step) {
      slab[dim] = {at, std::min(at + step, part[dim].end)};
      read(common, slab);
    }
  }

  void read_stretch(const Extent& extent, std::int64_t offset, std::span<std::byte> into) {
    source_.read(extent.file, extent.offset_bytes + offset, into);
    if (tap_) tap_(extent.file, extent.offset_bytes + offset, into);
  }

  const ByteSource& source_;
  FrameReader& frames_;
  const Tap& tap_;
  const std::int64_t element_bytes_;
  const std::span<std::byte> into_;
  Buffer scratch_;
  std::vector<FromChunk> awaited_;
};

[[noreturn]] void fail_incomplete(const TensorDesc& desc, const Box& box, const Box& missing) {
  throw Error(Errc::incomplete,
              fmt::format("cannot read {} of {}: no file holds {}; is a file of the checkpoint "
                          "missing?",
                          to_string(box), to_string(desc), to_string(missing)),
              "RM301");
}

[[noreturn]] void fail_side(const SideFile& side, const std::string& found) {
  throw Error(Errc::corrupt,
              fmt::format("cannot read side file '{}': {}; the file changed after it was written",
                          side.name, found),
              "RM207");
}

class ExtentReader final : public Reader {
 public:
  ExtentReader(Catalog catalog, ExtentMap extents, ByteSource source)
      : catalog_(std::move(catalog)),
        extents_(std::move(extents)),
        source_(std::move(source)),
        frames_(extents_, catalog_.tensors, source_.read) {}

  const Catalog& catalog() const noexcept override { return catalog_; }
  const ExtentMap& extents() const noexcept override { return extents_; }

  void read(std::size_t tensor, const Box& box, std::span<std::byte> into,
            const Tap& tap) const override {
    if (box.empty()) return;
    const TensorDesc& desc = catalog_.tensors[tensor];
    const ByteView view = byte_view(desc, box);
    assert(std::ssize(into) == view.box.num_elements() * view.element_bytes);

    PartReader reader(source_, frames_, tap, view.element_bytes, into);
    for (const Extent* extent : holding(tensor, box)) {
      const Common common{*extent, desc.dtype, byte_view(desc, extent->box).box, view.box};
      const Box part = *intersect(common.extent_box, common.wanted);
      if (is_chunked(*extent)) {
        reader.read_chunks(common, part);
      } else {
        reader.read(common, part);
      }
    }
    reader.read_awaited();
  }

  void unpack(const Extent& extent, std::int64_t k, std::span<const std::byte> stored,
              std::span<std::byte> into) const override {
    frames_.unpack(extent, k, stored, into);
  }

  void keep_unpacked(std::int64_t bytes) const override { frames_.keep_at_most(bytes); }

  void read_bytes(std::uint32_t file, std::int64_t offset,
                  std::span<std::byte> into) const override {
    source_.read(file, offset, into);
  }

  std::vector<std::byte> side(const SideFile& side) const override {
    const auto found = std::ranges::find(catalog_.side, side.name, &SideFile::name);
    if (found == catalog_.side.end()) {
      throw Error(Errc::not_found,
                  fmt::format("cannot read side file '{}': the checkpoint has none", side.name));
    }
    const auto number = static_cast<std::size_t>(found - catalog_.side.begin());
    const std::int64_t size = source_.side_bytes(number);
    if (size != side.size_bytes) {
      fail_side(side, fmt::format("it has {} bytes, but {} are recorded", size, side.size_bytes));
    }
    std::vector<std::byte> bytes(as_size(size));
    source_.read_side(number, bytes);
    if (const Digest digest = digest_of(bytes); digest != side.digest) {
      fail_side(side, fmt::format("it hashes to {}, but {} is recorded", to_string(digest),
                                  to_string(side.digest)));
    }
    return bytes;
  }

 private:
  // The extents that together hold the box. Throws if they do not hold all of it.
  std::vector<const Extent*> holding(std::size_t tensor, const Box& box) const {
    std::vector<const Extent*> found;
    std::vector<Box> missing{box};
    for (const std::uint32_t number : extents_.of(tensor)) {
      const Extent& extent = extents_.extents()[number];
      if (extent.copy != 0) break;
      if (!intersect(extent.box, box)) continue;
      found.push_back(&extent);

      std::vector<Box> still_missing;
      for (const Box& gap : missing) {
        const auto filled = intersect(gap, extent.box);
        const std::vector<Box> rest = filled ? subtract(gap, *filled) : std::vector{gap};
        std::ranges::copy(rest, std::back_inserter(still_missing));
      }
      missing = std::move(still_missing);
    }
    if (!missing.empty()) fail_incomplete(catalog_.tensors[tensor], box, missing.front());
    return found;
  }

  const Catalog catalog_;
  const ExtentMap extents_;
  const ByteSource source_;
  mutable FrameReader frames_;
};

// The files of a checkpoint, opened when they are asked for. Of those that nobody is reading, the
// one that was not asked for the longest makes room. Thread-safe.
class OpenFiles {
 public:
  static constexpr std::size_t limit = 512;

  OpenFiles(const FileSystem& files, std::vector<FileSystem::Path> paths)
      : files_(files), paths_(std::move(paths)) {}

  std::shared_ptr<const File> get(std::size_t number) {
    const std::lock_guard lock(mutex_);
    if (const auto found = open_.find(number); found != open_.end()) {
      recent_.splice(recent_.begin(), recent_, found->second);
    } else {
      if (recent_.size() == limit) close_one();
      recent_.push_front({number, files_.open(paths_[number])});
      open_[number] = recent_.begin();
    }
    return recent_.front().file;
  }

 private:
  struct Opened {
    std::size_t number = 0;
    std::shared_ptr<const File> file;
  };

  void close_one() {
    auto last = std::ranges::find_if(recent_.rbegin(), recent_.rend(),
                                     [](const Opened& each) { return each.file.use_count() == 1; });
    if (last == recent_.rend()) return;
    open_.erase(last->number);
    recent_.erase(std::prev(last.base()));
  }

  const FileSystem& files_;
  const std::vector<FileSystem::Path> paths_;
  std::mutex mutex_;
  std::list<Opened> recent_;  // the last one asked for comes first
  std::unordered_map<std::size_t, std::list<Opened>::iterator> open_;
};

}  // namespace

std::unique_ptr<Reader> make_extent_reader(Catalog catalog, ExtentMap extents, ByteSource source) {
  return std::make_unique<ExtentReader>(std::move(catalog), std::move(extents), std::move(source));
}

std::unique_ptr<Reader> make_reader(const FileSystem& files, OpenCheckpoint checkpoint) {
  const std::size_t first_side = checkpoint.paths.size();
  std::vector<FileSystem::Path> paths = std::move(checkpoint.paths);
  std::ranges::move(checkpoint.side_paths, std::back_inserter(paths));
  const auto open = std::make_shared<OpenFiles>(files, std::move(paths));

  ByteSource source;
  source.read = [open](std::uint32_t file, std::int64_t offset, std::span<std::byte> into) {
    open->get(file)->read_at(offset, into);
  };
  source.side_bytes = [open, first_side](std::size_t side) {
    return open->get(first_side + side)->size_bytes();
  };
  source.read_side = [open, first_side](std::size_t side, std::span<std::byte> into) {
    open->get(first_side + side)->read_at(0, into);
  };
  return make_extent_reader(std::move(checkpoint.catalog), std::move(checkpoint.extents),
                            std::move(source));
}

}  // namespace remesh
