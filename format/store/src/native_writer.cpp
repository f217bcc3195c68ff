#include <algorithm>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "extent_map_builder.hpp"
#include "frame_writer.hpp"
#include "manifest.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/certificate.hpp"
#include "remesh/store/chunks.hpp"
#include "remesh/store/native_store.hpp"
#include "remesh/store/open_files.hpp"
#include "remesh/store/staging.hpp"
#include "shard_reader.hpp"
#include "shard_writer.hpp"
#include "signed_files.hpp"
#include "storage_plan.hpp"

namespace remesh {
namespace {

using native::ShardDraft;
using Path = FileSystem::Path;

// Brings a catalog into the form that the manifest needs, and refuses what it cannot hold.
Catalog prepared(Catalog catalog) {
  catalog.format = "remesh";
  catalog.digests.clear();
  catalog.save_id.clear();
  if (catalog.layout.placed().empty()) {
    catalog.layout = Layout::replicated(catalog.layout.mesh(), catalog.tensors.size());
  }
  std::ranges::sort(catalog.side, {}, &SideFile::name);
  return catalog;
}

[[noreturn]] void refuse(const TensorDesc& desc, const std::string& why) {
  throw Error(Errc::unsupported, fmt::format("cannot store {}: {}", to_string(desc), why));
}

void check_text(const char* what, const std::string& name) {
  if (native::is_text(name)) return;
  throw Error(
      Errc::unsupported,
      fmt::format("cannot store the {} {:?}: its name is no UTF-8, and a manifest is", what, name));
}

void check_storable(const Catalog& catalog) {
  if (catalog.tensors.size() > native::most_tensors ||
      catalog.layout.placed().size() != catalog.tensors.size()) {
    throw Error(
        Errc::unsupported,
        fmt::format("cannot store {} tensors, of which {} are placed: at most {} can be",
                    catalog.tensors.size(), catalog.layout.placed().size(), native::most_tensors));
  }
  std::unordered_set<std::string_view> names;
  for (const TensorDesc& desc : catalog.tensors) {
    if (const auto why = native::why_not_storable(desc); !why.empty()) refuse(desc, why);
    check_text("tensor", desc.name);
    if (!names.insert(desc.name).second) refuse(desc, "another tensor has the same name");
  }
  for (const SideFile& side : catalog.side) {
    check_component(side.name, "the catalog");
    check_text("side file", side.name);
  }
  for (const Packaging::File& file : catalog.packaging.files) check_text("file", file.name);
}

std::int64_t estimated_bytes(const Catalog& catalog, std::span<const ShardDraft> drafts) {
  std::int64_t bytes = 0;
  for (const ShardDraft& draft : drafts) bytes += native::estimated_bytes(draft);
  for (const SideFile& side : catalog.side) bytes += side.size_bytes;
  return bytes;
}

class NativeWriter final : public Writer {
 public:
  NativeWriter(FileSystem& files, const Path& destination, Catalog wanted, SideSource side,
               const WriterOptions& options)
      : files_(files),
        catalog_(std::move(wanted)),
        side_(std::move(side)),
        drafts_(native::plan_storage(catalog_, options.copies, options.compress_level.has_value())),
        level_(options.compress_level),
        sign_(options.sign),
        sign_threads_(options.sign_threads),
        sign_stop_(options.sign_stop),
        staging_(files, destination, options.job_id, options.leftovers, options.identity),
        open_(files, paths()) {
    staging_.check_room(estimated_bytes(catalog_, drafts_));
    for (ShardDraft& draft : drafts_) native::create_shard(files_, path_of(draft), draft);
    extents_ = assemble([](const ShardDraft& draft) { return draft; });
    if (!extents_.all_frames().empty()) {
      frames_ = std::make_unique<native::FrameWriter>(
          *level_, series(), [this](std::uint32_t file) { return open_.get(file); });
    }
  }

  const Catalog& catalog() const noexcept override { return catalog_; }
  const ExtentMap& extents() const noexcept override { return extents_; }

  ExtentMap extents_on_medium() const override {
    return assemble([this](const ShardDraft& draft) { return read_back(draft); });
  }

  void write(std::size_t tensor, const Box& box, std::span<const std::byte> from,
             const Tap& tap) override {
    for (const StoredAt& at : places_of(extents_, tensor, catalog_.tensors[tensor], box)) {
      open_.get(at.file)->write_at(at.offset_bytes, from);
      if (tap) tap(at.file, at.offset_bytes, from);
    }
    if (frames_) write_chunk(tensor, box, from, tap);
  }

  std::int64_t working_bytes(int workers) const override {
    return frames_ ? compressing_bytes(*level_, workers) : 0;
  }

  void seal(std::span<const Digest> digests, std::span<const Digest> block_crcs) override;

  void forget_caches() override { open_.forget_caches(); }

  std::unique_ptr<Reader> reopen() const override {
    StrictFindings findings;
    return open_native(files_, staging_.directory(), findings);
  }

  void certify(const std::string& text) override {
    write_whole(files_, staging_.directory() / certificate_name, std::as_bytes(std::span(text)));
  }

  std::optional<Digest> manifest_digest() const override { return manifest_digest_; }

  bool publish() override {
    if (catalog_.save_id.empty()) {
      throw Error(Errc::internal,
                  "a checkpoint was published before it was sealed; this is a bug "
                  "in remesh");
    }
    return staging_.publish();
  }

 private:
  std::string name_of(const ShardDraft& draft) const {
    return native::shard_name(draft.header.rank, draft.header.ranks);
  }
  Path path_of(const ShardDraft& draft) const { return staging_.directory() / name_of(draft); }

  std::vector<Path> paths() const {
    std::vector<Path> paths;
    for (const ShardDraft& draft : drafts_) paths.push_back(path_of(draft));
    return paths;
  }

  ShardDraft read_back(const ShardDraft& draft) const;

  // The extent map of the shards, each as `look` sees it.
  template <typename Look>
  ExtentMap assemble(Look look) const {
    native::ExtentMapBuilder map;
    for (const ShardDraft& draft : drafts_) {
      ShardDraft seen = look(draft);
      map.add_shard(map.add_file(name_of(draft), draft.header.file_bytes), seen.header,
                    std::move(seen.index));
    }
    for (const SideFile& side : catalog_.side) {
      map.add_file(fmt::format("{}/{}", native::side_directory, side.name), side.size_bytes);
    }
    return map.take();
  }

  std::vector<native::FrameWriter::Series> series() const;
  void write_chunk(std::size_t tensor, const Box& box, std::span<const std::byte> from,
                   const Tap& tap);
  void take_digests(std::span<const Digest> digests, std::span<const Digest> block_crcs);
  void finish_frames();
  std::vector<native::ShardEntry> seal_shards(std::span<const Digest> block_crcs);
  void write_side_files();
  void write_manifest(std::vector<native::ShardEntry> shards);

  FileSystem& files_;
  Catalog catalog_;
  SideSource side_;
  std::vector<ShardDraft> drafts_;
  const std::optional<int> level_;
  const std::shared_ptr<const SecretKey> sign_;
  const int sign_threads_;
  const StopFlag* const sign_stop_;
  Staging staging_;
  OpenFiles open_;
  ExtentMap extents_;
  std::unique_ptr<native::FrameWriter> frames_;
  std::optional<Digest> manifest_digest_;
};

ShardDraft NativeWriter::read_back(const ShardDraft& draft) const {
  const Path path = path_of(draft);
  StrictFindings findings;
  const std::unique_ptr<File> file = files_.open(path);
  const auto read = native::read_header(*file, path, name_of(draft), findings);
  auto index = native::read_index(*file, read->header, path, name_of(draft), findings);
  return {read->header, std::move(*index)};
}

// The frames of a file follow each other in number, file after file.
std::vector<native::FrameWriter::Series> NativeWriter::series() const {
  std::vector<native::FrameWriter::Series> all;
  std::int64_t first = 0;
  for (std::uint32_t file = 0; file < drafts_.size(); ++file) {
    const auto count = std::ssize(drafts_[file].index.frames);
    if (count == 0) continue;
    all.push_back({file, first, first + count, drafts_[file].frames->frames_begin});
    first += count;
  }
  return all;
}

// A short chunk gets the zeros of a whole one.
void NativeWriter::write_chunk(std::size_t tensor, const Box& box, std::span<const std::byte> from,
                               const Tap& tap) {
  const TensorDesc& desc = catalog_.tensors[tensor];
  const std::vector<std::int64_t> numbers = frames_of(extents_, tensor, desc, box);
  if (numbers.empty()) return;
  const Extent& extent = extents_.extents()[extents_.extent_of_frame(numbers.front())];
  const auto whole = static_cast<std::size_t>(whole_chunk_bytes(desc.dtype, extent));
  const auto width = static_cast<std::size_t>(bits(desc.dtype) / 8);
  if (from.size() == whole) {
    frames_->write(from, width, numbers, tap);
  } else {
    std::vector<std::byte> padded(from.begin(), from.end());
    padded.resize(whole);
    frames_->write(padded, width, numbers, tap);
  }
  if (!tap) return;
  for (const std::int64_t number : numbers) tap.unpacked(number, 0, from);
}

void NativeWriter::take_digests(std::span<const Digest> digests,
                                std::span<const Digest> block_crcs) {
  std::size_t blocks = 0;
  for (const ShardDraft& draft : drafts_) blocks += draft.index.block_crcs.size();
  if (digests.size() != catalog_.tensors.size() || block_crcs.size() != blocks) {
    throw Error(Errc::internal,
                fmt::format("a checkpoint of {} tensors and {} blocks was sealed with {} and {} "
                            "digests; this is a bug in remesh",
                            catalog_.tensors.size(), blocks, digests.size(), block_crcs.size()));
  }
  catalog_.digests.assign(digests.begin(), digests.end());
  catalog_.save_id = native::save_id_of(catalog_);
}

// A shard calls itself sealed only once its payload is on the medium.
void NativeWriter::seal(std::span<const Digest> digests, std::span<const Digest> block_crcs) {
  take_digests(digests, block_crcs);
  finish_frames();
  open_.sync_all();
  auto shards = seal_shards(block_crcs);
  write_side_files();
  write_manifest(std::move(shards));
}

void NativeWriter::finish_frames() {
  if (!frames_) return;
  std::span<const Frame> frames = frames_->frames();
  for (std::uint32_t number = 0; number < drafts_.size(); ++number) {
    ShardDraft& draft = drafts_[number];
    const std::size_t count = draft.index.frames.size();
    native::finish_frames(*open_.get(number), path_of(draft), draft, frames.first(count));
    frames = frames.subspan(count);
  }
}

std::vector<native::ShardEntry> NativeWriter::seal_shards(std::span<const Digest> block_crcs) {
  const native::SaveId id = native::parse_save_id(catalog_.save_id);
  std::vector<native::ShardEntry> shards;
  for (std::uint32_t number = 0; number < drafts_.size(); ++number) {
    ShardDraft& draft = drafts_[number];
    const std::size_t blocks = draft.index.block_crcs.size();
    const std::shared_ptr<File> file = open_.get(number);
    const Digest header = native::seal_shard(*file, draft, block_crcs.first(blocks), id);
    file->sync();
    shards.push_back({draft.header.rank, draft.header.file_bytes, header});
    block_crcs = block_crcs.subspan(blocks);
  }
  return shards;
}

void NativeWriter::write_side_files() {
  if (catalog_.side.empty()) return;
  const Path directory = staging_.directory() / native::side_directory;
  files_.create_directory(directory);
  for (const SideFile& side : catalog_.side) {
    write_whole(files_, directory / side.name, bytes_of(side_, side));
  }
  files_.sync_directory(directory);
}

void NativeWriter::write_manifest(std::vector<native::ShardEntry> shards) {
  native::Manifest manifest{catalog_, std::move(shards)};
  if (sign_) {
    manifest.trees =
        native::trees_of(files_, staging_.directory(), manifest, sign_threads_, sign_stop_);
  }
  const std::string text = native::to_json(manifest);
  if (static_cast<std::int64_t>(text.size()) > native::most_manifest_bytes) {
    throw Error(Errc::unsupported,
                fmt::format("cannot write a manifest of {} bytes: at most {} can be read",
                            text.size(), native::most_manifest_bytes));
  }
  write_whole(files_, staging_.directory() / native::manifest_name, std::as_bytes(std::span(text)));
  if (sign_) {
    native::write_signature(files_, staging_.directory(), text, catalog_.save_id, *sign_);
  }
  manifest_digest_ = digest_of(std::as_bytes(std::span(text)));
  const std::string commit = native::commit_line(text);
  write_whole(files_, staging_.directory() / native::commit_name, std::as_bytes(std::span(commit)));
}

}  // namespace

std::unique_ptr<Writer> create_native(FileSystem& files, const FileSystem::Path& destination,
                                      Catalog wanted, const SideSource& side,
                                      const WriterOptions& options) {
  Catalog catalog = prepared(std::move(wanted));
  check_storable(catalog);
  return std::make_unique<NativeWriter>(files, destination, std::move(catalog), side, options);
}

}  // namespace remesh
