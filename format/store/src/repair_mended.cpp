#include "repair_mended.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "extent_map_builder.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/reader.hpp"
#include "remesh/store/tally.hpp"

namespace remesh::native {

class MendedFiles::MendedFile final : public File {
 public:
  MendedFile(std::unique_ptr<File> inner, const ShardState& shard, const RepairBlocks& blocks,
             std::span<const BlockId> mended)
      : inner_(std::move(inner)), shard_(shard), blocks_(blocks), mended_(mended) {}

  // What lies in a mended block is not even looked at: it may be behind the end of the file.
  void read_at(std::int64_t offset, std::span<std::byte> into) const override {
    const std::int64_t end = offset + std::ssize(into);
    std::int64_t at = offset;
    const auto end_of = [&](const BlockId& block) {
      const BlockPlace place = blocks_.place(block);
      return place.offset_bytes + place.length_bytes;
    };
    for (auto next = std::ranges::upper_bound(mended_, offset, {}, end_of); next != mended_.end();
         ++next) {
      const BlockId& block = *next;
      const BlockPlace place = blocks_.place(block);
      const std::int64_t begin = std::max(at, place.offset_bytes);
      const std::int64_t last = std::min(end, place.offset_bytes + place.length_bytes);
      if (begin >= last) break;
      read_plain(at, part(into, at - offset, begin - at));
      copy(block, begin - place.offset_bytes, part(into, begin - offset, last - begin));
      at = last;
    }
    read_plain(at, part(into, at - offset, end - at));
    overlay(shard_.patches, offset, into);
  }
  void write_at(std::int64_t /*offset*/, std::span<const std::byte> /*from*/) override {
    throw Error(Errc::internal, "a mended file is for reading; this is a bug in remesh");
  }
  std::int64_t size_bytes() const override { return shard_.entry.size_bytes; }
  void sync() override {}
  void forget_cache() noexcept override { inner_->forget_cache(); }

 private:
  static std::span<std::byte> part(std::span<std::byte> bytes, std::int64_t at,
                                   std::int64_t length) {
    return bytes.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(length));
  }

  void read_plain(std::int64_t at, std::span<std::byte> into) const {
    if (!into.empty()) inner_->read_at(at, into);
  }

  void copy(const BlockId& block, std::int64_t within, std::span<std::byte> into) const {
    std::vector<std::byte> whole(static_cast<std::size_t>(blocks_.place(block).length_bytes));
    if (!blocks_.fetch(block, whole)) {
      throw Error(Errc::io,
                  fmt::format("cannot read '{}': a block of it could be mended a moment ago",
                              shard_.path.string()),
                  "RM703");
    }
    std::copy_n(whole.begin() + within, into.size(), into.begin());
  }

  std::unique_ptr<File> inner_;
  const ShardState& shard_;
  const RepairBlocks& blocks_;
  const std::span<const BlockId> mended_;
};

MendedFiles::MendedFiles(FileSystem& inner, const std::vector<ShardState>& shards,
                         const RepairBlocks& blocks, std::span<const BlockId> mended)
    : ForwardingFileSystem(inner), shards_(shards), blocks_(blocks), mended_(shards.size()) {
  for (const BlockId& block : mended) mended_[block.shard].push_back(block);
  for (auto& each : mended_) {
    std::ranges::sort(each, {},
                      [&](const BlockId& block) { return blocks.place(block).offset_bytes; });
  }
}

std::unique_ptr<File> MendedFiles::open(const Path& path) const {
  std::unique_ptr<File> file = inner().open(path);
  const auto shard = std::ranges::find(shards_, path, &ShardState::path);
  if (shard == shards_.end()) return file;
  const auto number = static_cast<std::size_t>(shard - shards_.begin());
  return std::make_unique<MendedFile>(std::move(file), *shard, blocks_, mended_[number]);
}

std::vector<Digest> digests_of(const FileSystem& files, const std::vector<ShardState>& shards,
                               std::span<const TensorDesc> tensors, const SweepContext& machine) {
  ExtentMapBuilder map;
  OpenCheckpoint checkpoint;
  checkpoint.paths.reserve(shards.size());
  for (const ShardState& shard : shards) {
    map.add_shard(map.add_file(shard.name, shard.entry.size_bytes), *shard.header, *shard.index);
    checkpoint.paths.push_back(shard.path);
  }
  checkpoint.catalog.format = "remesh";
  checkpoint.catalog.tensors.assign(tensors.begin(), tensors.end());
  checkpoint.extents = map.take();
  const std::unique_ptr<Reader> reader = make_reader(files, std::move(checkpoint));
  const ExtentMap& extents = reader->extents();
  Tally tally(reader->catalog().tensors, extents, /*with_blocks=*/false);
  sweep(machine, *reader, all_extents(extents), tally.tap());
  std::vector<Digest> digests;
  digests.reserve(tensors.size());
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    const Tally::Sum sum = tally.sum(tensor);
    if (!sum.complete) {
      throw Error(Errc::corrupt,
                  fmt::format("cannot rebuild manifest.json: of {} not every element was read once",
                              to_string(tensors[tensor])),
                  "RM301");
    }
    digests.push_back(sum.digest);
  }
  return digests;
}

}  // namespace remesh::native
