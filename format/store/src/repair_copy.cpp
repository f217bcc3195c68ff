#include "repair_copy.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "remesh/core/error.hpp"
#include "remesh/store/certificate.hpp"
#include "remesh/store/file_tree.hpp"
#include "remesh/store/native_store.hpp"
#include "remesh/store/tally.hpp"
#include "shard_writer.hpp"

namespace remesh::native {
namespace {

using Path = FileSystem::Path;

constexpr std::int64_t step = ExtentMap::block_bytes;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

[[noreturn]] void unproved(const std::string& what, Digest found, Digest recorded) {
  throw Error(Errc::corrupt,
              fmt::format("cannot repair the checkpoint: after all was mended {} hashes to {}, but "
                          "{} is recorded",
                          what, to_string(found), to_string(recorded)),
              "RM207");
}

// Metadata, gaps and index, in runs of at most a block, and the header.
void copy_complement(File& out, const ShardState& state, const File& source) {
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(step, state.entry.size_bytes)));
  const auto copy = [&](std::int64_t at, std::int64_t length) {
    const auto part = std::span(buffer).first(static_cast<std::size_t>(length));
    source.read_at(at, part);
    overlay(state.patches, at, part);
    out.write_at(at, part);
  };
  copy(0, header_bytes);
  for (const ByteRange& range : complement(state.entry.size_bytes, *state.index)) {
    for (std::int64_t at = range.begin; at < range.end; at += step) {
      copy(at, std::min(step, range.end - at));
    }
  }
}

void prove_blocks(const Reader& reader, const Tally& tally) {
  const ExtentMap& map = reader.extents();
  for (std::size_t number = 0; number < map.extents().size(); ++number) {
    const Extent& extent = map.extents()[number];
    const auto recorded = map.blocks(extent);
    for (std::int64_t k = 0; k < std::ssize(recorded); ++k) {
      const Digest wanted = recorded[static_cast<std::size_t>(k)];
      if (const Digest found = tally.block(number, k); found != wanted) {
        unproved(
            fmt::format("block {} of '{}' in '{}'", k, reader.catalog().tensors[extent.tensor].name,
                        map.files()[extent.file].name),
            found, wanted);
      }
    }
  }
}

void prove_tensors(const Catalog& catalog, const Tally& tally) {
  for (std::size_t tensor = 0; tensor < catalog.tensors.size(); ++tensor) {
    const Tally::Sum sum = tally.sum(tensor);
    if (!sum.complete || sum.digest != catalog.digests[tensor]) {
      unproved(to_string(catalog.tensors[tensor]), sum.digest, catalog.digests[tensor]);
    }
  }
}

void prove_guard(const Reader& reader, const Guard& guard, std::span<std::byte> buffer) {
  Digest digest;
  for (const ByteRange& range : guard.ranges) {
    for (std::int64_t at = range.begin; at < range.end; at += step) {
      const auto part = buffer.first(static_cast<std::size_t>(std::min(step, range.end - at)));
      reader.read_bytes(guard.file, at, part);
      digest = extend(digest, part);
    }
  }
  if (digest == guard.expected) return;
  unproved(fmt::format("the {} of '{}'", guard.what, reader.extents().files()[guard.file].name),
           digest, guard.expected);
}

void prove_trees(const FileSystem& files, const Path& directory, const Documents& documents,
                 const SweepContext& machine) {
  const Manifest& manifest = documents.manifest;
  if (!manifest.trees) return;
  const auto check = [&](const std::string& name, const TreeHash& recorded) {
    const TreeHash found = tree_of(*files.open(directory / name), machine.pool, &machine.stop);
    if (found == recorded) return;
    throw Error(Errc::corrupt,
                fmt::format("cannot repair the checkpoint: after all was mended the tree hash of "
                            "'{}' is {}, but {} is recorded",
                            name, to_string(found), to_string(recorded)),
                "RM207");
  };
  const Index ranks = manifest.catalog.layout.mesh().num_ranks();
  for (std::size_t i = 0; i < manifest.shards.size(); ++i) {
    check(shard_name(manifest.shards[i].rank, ranks), manifest.trees->files[i]);
  }
  for (std::size_t i = 0; i < manifest.catalog.side.size(); ++i) {
    check(fmt::format("{}/{}", side_directory, manifest.catalog.side[i].name),
          manifest.trees->side[i]);
  }
}

}  // namespace

BlockBuffers::BlockBuffers(const SweepContext& machine)
    : held_(machine.budget.reserve(step * machine.pool.size(), "read buffers")),
      buffers_(static_cast<std::size_t>(machine.pool.size())) {}

std::span<std::byte> BlockBuffers::of(int worker, std::int64_t bytes) {
  std::vector<std::byte>& buffer = buffers_[static_cast<std::size_t>(worker)];
  const auto wanted = static_cast<std::size_t>(bytes);
  if (buffer.size() < wanted) buffer.resize(wanted);
  return std::span(buffer).first(static_cast<std::size_t>(bytes));
}

std::vector<BlockId> blocks_of(std::uint32_t shard, const ShardState& state) {
  std::vector<BlockId> blocks;
  if (!state.index) return blocks;
  blocks.reserve(state.index->block_crcs.size());
  for (std::uint32_t extent = 0; extent < state.extents.size(); ++extent) {
    for (std::int64_t k = 0; k < num_blocks(state.extents[extent]); ++k) {
      blocks.push_back({shard, extent, k});
    }
  }
  return blocks;
}

void write_shard(FileSystem& files, const Path& directory, std::uint32_t shard,
                 const ShardState& state, const RepairBlocks& blocks, const SweepContext& machine) {
  const Path path = directory / state.name;
  const std::unique_ptr<File> out =
      state.remade ? files.open_for_writing(path) : files.create(path);
  if (!state.remade) copy_complement(*out, state, *files.open(state.path));
  const std::vector<BlockId> all = blocks_of(shard, state);
  BlockBuffers buffers(machine);
  machine.pool.run(all.size(), [&](std::size_t index, int worker) {
    machine.stop.check();
    const BlockPlace place = blocks.place(all[index]);
    const auto bytes = buffers.of(worker, place.length_bytes);
    if (!blocks.fetch(all[index], bytes)) {
      throw Error(Errc::io,
                  fmt::format("cannot read '{}': bytes [{}, {}) could be read a moment ago",
                              state.path.string(), place.offset_bytes,
                              place.offset_bytes + place.length_bytes),
                  "RM703");
    }
    out->write_at(place.offset_bytes, bytes);
    machine.progress.advance(place.length_bytes);
  });
  out->sync();
}

void write_documents(FileSystem& files, const Path& directory, const Documents& documents) {
  const std::vector<SideFile>& side = documents.manifest.catalog.side;
  if (!side.empty()) {
    files.create_directory(directory / side_directory);
    for (std::size_t i = 0; i < side.size(); ++i) {
      write_whole(files, directory / side_directory / side[i].name, bytes_of(documents.side[i]));
    }
    files.sync_directory(directory / side_directory);
  }
  if (documents.certificate) {
    write_whole(files, directory / certificate_name, bytes_of(*documents.certificate));
  }
  if (documents.signature) {
    write_whole(files, directory / signature_name, bytes_of(*documents.signature));
  }
  write_whole(files, directory / manifest_name, bytes_of(documents.manifest_text));
  write_whole(files, directory / commit_name, bytes_of(documents.commit_text));
}

void prove(const FileSystem& files, const Path& directory, const Documents& documents,
           const SweepContext& machine) {
  StrictFindings findings;
  const std::unique_ptr<Reader> reader = open_native(files, directory, findings);
  Tally tally(reader->catalog().tensors, reader->extents(), /*with_blocks=*/true);
  sweep(machine, *reader, all_extents(reader->extents()), tally.tap());
  prove_blocks(*reader, tally);
  prove_tensors(reader->catalog(), tally);
  BlockBuffers buffers(machine);
  const auto guards = reader->extents().guards();
  machine.pool.run(guards.size(), [&](std::size_t index, int worker) {
    const std::int64_t most = reader->extents().files()[guards[index].file].size_bytes;
    prove_guard(*reader, guards[index], buffers.of(worker, std::min(step, most)));
  });
  prove_trees(files, directory, documents, machine);
}

}  // namespace remesh::native
