#include "remesh/store/memory_store.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "extent_reader.hpp"
#include "remesh/core/error.hpp"
#include "remesh/schema/pieces.hpp"
#include "remesh/schema/runs.hpp"

namespace remesh {
namespace {

std::size_t as_size(std::int64_t value) { return static_cast<std::size_t>(value); }

[[noreturn]] void fail_side(const SideFile& side) {
  throw Error(Errc::not_found,
              fmt::format("cannot read side file '{}': a store in memory keeps none", side.name));
}

// Every holder's pieces, back to back in the order of the tensors.
ExtentMap lay_out(const Catalog& catalog) {
  std::vector<ExtentMap::FileEntry> files(as_size(catalog.layout.mesh().num_ranks()));
  for (std::size_t rank = 0; rank < files.size(); ++rank)
    files[rank].name = fmt::format("rank-{}", rank);

  const Pieces pieces(catalog.layout, catalog.tensors);
  std::vector<Extent> extents;
  for (std::size_t tensor = 0; tensor < catalog.tensors.size(); ++tensor) {
    const TensorDesc& desc = catalog.tensors[tensor];
    for (const HeldBox& held : pieces.of(tensor)) {
      const ByteView view = byte_view(desc, held.box);
      const std::int64_t bytes = view.box.num_elements() * view.element_bytes;
      std::uint32_t copy = 0;
      for (const Rank rank : held.holders) {
        std::int64_t& end = files[as_size(rank)].size_bytes;
        extents.push_back({.tensor = static_cast<std::uint32_t>(tensor),
                           .file = static_cast<std::uint32_t>(rank),
                           .rank = rank,
                           .copy = copy++,
                           .offset_bytes = bytes > 0 ? end : 0,
                           .length_bytes = bytes,
                           .box = held.box});
        end += bytes;
      }
    }
  }
  return {std::move(files), std::move(extents)};
}

// The same map with the blocks' CRCs, in the order of its extents.
ExtentMap with_blocks(const ExtentMap& map, std::span<const Digest> block_crcs) {
  std::vector<Extent> extents(map.extents().begin(), map.extents().end());
  std::int64_t blocks = 0;
  for (Extent& extent : extents) {
    extent.first_block = blocks;
    blocks += num_blocks(extent);
  }
  return {{map.files().begin(), map.files().end()},
          std::move(extents),
          {block_crcs.begin(), block_crcs.end()}};
}

// What a store consists of.
struct Contents {
  Catalog catalog;
  ExtentMap extents;
  std::vector<std::vector<std::byte>> files;
};

std::unique_ptr<Reader> reader_of(const Contents& contents) {
  ByteSource source;
  source.read = [&contents](std::uint32_t file, std::int64_t offset, std::span<std::byte> into) {
    const auto bytes = std::span(contents.files[file]).subspan(as_size(offset), into.size());
    std::ranges::copy(bytes, into.begin());
  };
  source.side_bytes = [&contents](std::size_t side) -> std::int64_t {
    fail_side(contents.catalog.side[side]);
  };
  source.read_side = [](std::size_t, std::span<std::byte>) {};
  return make_extent_reader(contents.catalog, contents.extents, std::move(source));
}

class MemoryWriter final : public Writer {
 public:
  explicit MemoryWriter(Contents& contents) : contents_(contents) {}

  const Catalog& catalog() const noexcept override { return contents_.catalog; }
  const ExtentMap& extents() const noexcept override { return contents_.extents; }
  ExtentMap extents_on_medium() const override { return lay_out(contents_.catalog); }

  void write(std::size_t tensor, const Box& box, std::span<const std::byte> from,
             const Tap& tap) override {
    const TensorDesc& desc = contents_.catalog.tensors[tensor];
    for (const StoredAt& place : places_of(contents_.extents, tensor, desc, box)) {
      const auto into = std::span(contents_.files[place.file]).subspan(as_size(place.offset_bytes));
      std::ranges::copy(from, into.begin());
      if (tap) tap(place.file, place.offset_bytes, from);
    }
  }

  void seal(std::span<const Digest> digests, std::span<const Digest> block_crcs) override {
    contents_.catalog.digests.assign(digests.begin(), digests.end());
    if (!block_crcs.empty()) contents_.extents = with_blocks(contents_.extents, block_crcs);
  }

  void forget_caches() override {}
  std::unique_ptr<Reader> reopen() const override { return reader_of(contents_); }
  void certify(const std::string& /*text*/) override {}

  std::optional<Digest> manifest_digest() const override { return std::nullopt; }

  bool publish() override { return true; }

 private:
  Contents& contents_;
};

}  // namespace

struct MemoryStore::State {
  Contents contents;
};

MemoryStore::MemoryStore(Catalog catalog) : state_(std::make_unique<State>()) {
  Contents& contents = state_->contents;
  contents.extents = lay_out(catalog);
  contents.catalog = std::move(catalog);
  for (const ExtentMap::FileEntry& file : contents.extents.files()) {
    contents.files.emplace_back(as_size(file.size_bytes));
  }
}

MemoryStore::~MemoryStore() = default;

const Catalog& MemoryStore::catalog() const noexcept { return state_->contents.catalog; }
const ExtentMap& MemoryStore::extents() const noexcept { return state_->contents.extents; }

std::span<std::byte> MemoryStore::bytes(Rank rank) noexcept {
  return state_->contents.files[as_size(rank)];
}

std::unique_ptr<Reader> MemoryStore::reader() const { return reader_of(state_->contents); }

std::unique_ptr<Writer> MemoryStore::writer() {
  return std::make_unique<MemoryWriter>(state_->contents);
}

}  // namespace remesh
