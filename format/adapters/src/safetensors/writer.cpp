#include "writer.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "index.hpp"
#include "packing.hpp"
#include "reader.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/open_files.hpp"
#include "remesh/store/staging.hpp"
#include "weights.hpp"

namespace remesh::safetensors {
namespace {

using Numbers = std::unordered_map<std::string_view, std::uint32_t>;

Numbers numbers_of(const std::vector<TensorDesc>& tensors) {
  Numbers numbers;
  for (std::uint32_t k = 0; k < tensors.size(); ++k) numbers.emplace(tensors[k].name, k);
  return numbers;
}

// Where the packing puts each tensor.
ExtentMap planned_extents(const Packing& packing, const std::vector<TensorDesc>& tensors) {
  const Numbers numbers = numbers_of(tensors);
  std::vector<ExtentMap::FileEntry> entries;
  std::vector<Extent> extents;
  for (std::uint32_t file = 0; file < packing.files.size(); ++file) {
    const Header& header = packing.files[file].header;
    entries.push_back({packing.packaging.files[file].name, header.file_bytes()});
    for (const HeaderTensor& tensor : header.tensors) {
      const std::int64_t length = tensor.end_bytes - tensor.begin_bytes;
      extents.push_back(
          {.tensor = numbers.at(tensor.desc.name),
           .file = file,
           .offset_bytes = length > 0 ? header.data_begin_bytes + tensor.begin_bytes : 0,
           .length_bytes = length,
           .box = tensor.desc.extent});
    }
  }
  return {std::move(entries), std::move(extents)};
}

[[noreturn]] void fail_differs(const std::string& what) {
  throw Error(Errc::internal,
              fmt::format("cannot use what was written: {}; this is a bug in remesh", what));
}

// Gives what was parsed the tensor numbers of what was wanted.
void renumber(OpenCheckpoint& parsed, const Catalog& wanted) {
  Catalog& catalog = parsed.catalog;
  if (catalog.tensors.size() != wanted.tensors.size()) {
    fail_differs(fmt::format("it has {} tensors, but {} were wanted", catalog.tensors.size(),
                             wanted.tensors.size()));
  }
  const Numbers numbers = numbers_of(wanted.tensors);
  std::vector<std::uint32_t> number(catalog.tensors.size());
  std::vector<std::uint32_t> file_of(catalog.tensors.size());
  for (std::size_t k = 0; k < catalog.tensors.size(); ++k) {
    const auto found = numbers.find(catalog.tensors[k].name);
    if (found == numbers.end() || wanted.tensors[found->second] != catalog.tensors[k]) {
      fail_differs(fmt::format("{} was not wanted", to_string(catalog.tensors[k])));
    }
    number[k] = found->second;
    file_of[number[k]] = catalog.packaging.file_of[k];
  }
  std::vector<Extent> extents(parsed.extents.extents().begin(), parsed.extents.extents().end());
  for (Extent& extent : extents) extent.tensor = number[extent.tensor];
  const auto entries = parsed.extents.files();
  parsed.extents = ExtentMap({entries.begin(), entries.end()}, std::move(extents));
  catalog.tensors = wanted.tensors;
  catalog.packaging.file_of = std::move(file_of);
}

void check_side_names(const Catalog& wanted) {
  for (const SideFile& side : wanted.side) {
    check_component(side.name, "the list of side files");
    const auto& files = wanted.packaging.files;
    if (side.name == index_name || is_optimizer_file(side.name) ||
        side.name.ends_with(".safetensors") ||
        std::ranges::find(files, side.name, &Packaging::File::name) != files.end()) {
      throw Error(Errc::unsupported,
                  fmt::format("cannot write the side file '{}': a file of tensors has that name",
                              side.name));
    }
  }
}

class HfWriter final : public Writer {
 public:
  HfWriter(FileSystem& files, const FileSystem::Path& destination, Catalog wanted, SideSource side,
           const WriterOptions& options, Packing packing)
      : files_(files),
        catalog_(std::move(wanted)),
        extents_(planned_extents(packing, catalog_.tensors)),
        side_(std::move(side)),
        staging_(files, destination, options.job_id, options.leftovers, options.identity),
        open_(files, paths()) {
    staging_.check_room(file_bytes());
    for (std::uint32_t k = 0; k < packing.files.size(); ++k) create_file(k, packing.files[k]);
    create_index(index_name, catalog_.packaging.index_text);
    create_index(optimizer_index_name, catalog_.packaging.optimizer_index_text);
  }

  const Catalog& catalog() const noexcept override { return catalog_; }
  const ExtentMap& extents() const noexcept override { return extents_; }
  ExtentMap extents_on_medium() const override {
    return parse_back(/*with_side_files=*/false).extents;
  }

  void write(std::size_t tensor, const Box& box, std::span<const std::byte> from,
             const Tap& tap) override {
    for (const StoredAt& at : places_of(extents_, tensor, catalog_.tensors[tensor], box)) {
      open_.get(at.file)->write_at(at.offset_bytes, from);
      if (tap) tap(at.file, at.offset_bytes, from);
    }
  }

  // Neither digests nor block CRCs have a place in this format.
  void seal(std::span<const Digest>, std::span<const Digest>) override {
    open_.sync_all();
    for (const SideFile& side : catalog_.side) {
      write_whole(files_, staging_.directory() / side.name, bytes_of(side_, side));
    }
  }

  void forget_caches() override { open_.forget_caches(); }

  std::unique_ptr<Reader> reopen() const override {
    return make_reader(files_, parse_back(/*with_side_files=*/true));
  }

  void certify(const std::string& /*text*/) override {}

  std::optional<Digest> manifest_digest() const override { return std::nullopt; }

  bool publish() override { return staging_.publish(); }

 private:
  std::vector<FileSystem::Path> paths() const {
    std::vector<FileSystem::Path> paths;
    for (const auto& file : extents_.files()) paths.push_back(staging_.directory() / file.name);
    return paths;
  }

  std::int64_t file_bytes() const {
    std::int64_t bytes = 0;
    for (const auto& file : extents_.files()) bytes += file.size_bytes;
    for (const SideFile& side : catalog_.side) bytes += side.size_bytes;
    return bytes;
  }

  void create_file(std::uint32_t number, const PackedFile& packed) {
    const auto& entry = extents_.files()[number];
    const auto file = files_.create(staging_.directory() / entry.name);
    const std::string head = with_length_word(packed.text);
    file->write_at(0, std::as_bytes(std::span(head)));
    if (packed.header.data_bytes() == 0) return;
    constexpr std::array<std::byte, 1> last{};  // gives the file its size; the payload replaces it
    file->write_at(entry.size_bytes - 1, last);
  }

  void create_index(std::string_view name, const std::string& text) {
    if (text.empty()) return;
    write_whole(files_, staging_.directory() / name, std::as_bytes(std::span(text)));
  }

  // What the reader refuses in files of ours is something that the format cannot hold.
  std::optional<OpenCheckpoint> parse_own(bool with_side_files, Findings& findings) const {
    try {
      return parse(files_, staging_.directory(), staging_.directory(), with_side_files, findings);
    } catch (const Error& error) {
      if (error.code() == Errc::io || error.code() == Errc::out_of_memory) throw;
      throw Error(
          Errc::unsupported,
          fmt::format("cannot write this as hf, since no reader would take it: {}", error.what()),
          error.id());
    }
  }

  OpenCheckpoint parse_back(bool with_side_files) const {
    StrictFindings findings;
    auto parsed = parse_own(with_side_files, findings);
    if (!parsed) fail_differs("it has no file of tensors");
    renumber(*parsed, catalog_);
    return std::move(*parsed);
  }

  FileSystem& files_;
  const Catalog catalog_;
  const ExtentMap extents_;
  const SideSource side_;
  Staging staging_;
  OpenFiles open_;
};

}  // namespace

std::unique_ptr<Writer> create(FileSystem& files, const FileSystem::Path& destination,
                               Catalog wanted, const SideSource& side,
                               const WriterOptions& options) {
  Packing packing = pack(wanted, options.shard_size_bytes);
  wanted.format = "hf";
  wanted.digests.clear();
  wanted.packaging = packing.packaging;
  check_side_names(wanted);
  return std::make_unique<HfWriter>(files, destination, std::move(wanted), side, options,
                                    std::move(packing));
}

}  // namespace remesh::safetensors
