#include "proof.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "remesh/core/error.hpp"

namespace remesh::detail {
namespace {

std::string_view file_of(const ExtentMap& map, std::size_t tensor) {
  const auto numbers = map.of(tensor);
  if (numbers.empty()) return "no file";
  return map.files()[map.extents()[numbers.front()].file].name;
}

}  // namespace

Proof::Proof(const NamedSource& source, const Catalog& target, const ExtentMap& target_map,
             std::span<const std::size_t> source_of, const Passed& passed)
    : target_(target), map_(target_map) {
  const auto& [sent, cast, arrived] = passed;
  if (sent.stray_bytes() != 0 || arrived.stray_bytes() != 0) {
    throw Error(Errc::internal,
                fmt::format("cannot publish the checkpoint: {} bytes read and {} bytes written "
                            "belong to no tensor",
                            sent.stray_bytes(), arrived.stray_bytes()));
  }
  for (std::size_t tensor = 0; tensor < source_of.size(); ++tensor) {
    const Digest read = source_digest(source, source_of[tensor], sent);
    const bool is_cast =
        source.reader.catalog().tensors[source_of[tensor]].dtype != target.tensors[tensor].dtype;
    source_digests_.push_back(read);
    digests_.push_back(is_cast ? cast.sum(tensor).digest : read);
    check_target(tensor, digests_.back(), arrived);
  }
  take_blocks(arrived);
  check_copies();
}

Digest Proof::source_digest(const NamedSource& source, std::size_t tensor, const Tally& sent) {
  const Catalog& catalog = source.reader.catalog();
  const TensorDesc& desc = catalog.tensors[tensor];
  const Tally::Sum sum = sent.sum(tensor);
  if (!sum.complete) {
    throw Error(Errc::corrupt,
                fmt::format("cannot read {} from {}: {} bytes were read, but each of its {} bytes "
                            "must be read exactly once",
                            to_string(desc), file_of(source.reader.extents(), tensor), sum.bytes,
                            num_bytes(desc)),
                "RM301");
  }
  if (catalog.digests.empty()) return sum.digest;
  ++recorded_;
  if (catalog.digests[tensor] != sum.digest) {
    throw Error(
        Errc::corrupt,
        fmt::format("cannot use {} from {}: its bytes hash to {}, but {} is recorded; the "
                    "file changed after it was written (`remesh verify {}` lists the damaged "
                    "blocks){}",
                    to_string(desc), file_of(source.reader.extents(), tensor),
                    to_string(sum.digest), to_string(catalog.digests[tensor]), source.name,
                    other_copies(source, tensor)),
        "RM207");
  }
  return sum.digest;
}

void Proof::check_target(std::size_t tensor, Digest wanted, const Tally& arrived) const {
  const TensorDesc& desc = target_.tensors[tensor];
  const Tally::Sum sum = arrived.sum(tensor);
  if (sum.complete && sum.digest == wanted) return;
  throw Error(
      Errc::internal,
      fmt::format("cannot publish {}: {} of its {} bytes were written to {}, hashing to {}, "
                  "but the source's hash to {}; nothing was committed",
                  to_string(desc), sum.bytes, num_bytes(desc), file_of(map_, tensor),
                  to_string(sum.digest), to_string(wanted)));
}

void Proof::take_blocks(const Tally& arrived) {
  const auto extents = map_.extents();
  for (std::size_t number = 0; number < extents.size(); ++number) {
    first_block_.push_back(block_crcs_.size());
    target_bytes_ += extents[number].length_bytes;
    for (std::int64_t k = 0; k < num_blocks(extents[number]); ++k) {
      block_crcs_.push_back(arrived.block(number, k));
    }
  }
}

// Copy 0 was proved as a tensor; each further copy of a box equals it block by block.
void Proof::check_copies() const {
  const auto extents = map_.extents();
  const auto blocks_of = [&](std::uint32_t number) {
    const auto count = static_cast<std::size_t>(num_blocks(extents[number]));
    return std::span(block_crcs_).subspan(first_block_[number], count);
  };
  for (std::uint32_t number = 0; number < extents.size(); ++number) {
    const Extent& copy = extents[number];
    if (copy.copy == 0) continue;
    const auto numbers = map_.of(copy.tensor);
    const auto first = std::ranges::find_if(numbers, [&](std::uint32_t other) {
      return extents[other].copy == 0 && extents[other].box == copy.box;
    });
    if (first == numbers.end() || !std::ranges::equal(blocks_of(*first), blocks_of(number))) {
      throw Error(Errc::internal,
                  fmt::format("cannot publish {}: copy {} of {} in {} is not what copy 0 is",
                              to_string(target_.tensors[copy.tensor]), copy.copy,
                              to_string(copy.box), map_.files()[copy.file].name));
    }
  }
}

void Proof::check_frames(const ExtentMap& sealed, const Tally& arrived) const {
  const auto said = sealed.all_frames();
  const auto written = arrived.frames();
  const auto [at, other] = std::ranges::mismatch(said, written);
  if (at == said.end() && other == written.end()) return;
  const std::string place =
      at == said.end() || other == written.end()
          ? fmt::format("{} frames, but {} were written", said.size(), written.size())
          : fmt::format("frame {} at {} with {} bytes, but it was written at {} with {}",
                        at - said.begin(), at->offset_bytes, at->length_bytes, other->offset_bytes,
                        other->length_bytes);
  throw Error(
      Errc::internal,
      fmt::format("cannot publish the checkpoint: its index has {}; nothing was committed", place));
}

void Proof::check_read_back(const Tally& again) const {
  const auto extents = map_.extents();
  for (std::size_t number = 0; number < extents.size(); ++number) {
    const Extent& extent = extents[number];
    for (std::int64_t k = 0; k < num_blocks(extent); ++k) {
      const Digest written = block_crcs_[first_block_[number] + static_cast<std::size_t>(k)];
      if (again.block(number, k) == written) continue;
      const std::int64_t begin =
          is_chunked(extent)
              ? again.frames()[static_cast<std::size_t>(extent.first_frame + k)].offset_bytes
              : extent.offset_bytes + k * ExtentMap::block_bytes;
      throw Error(
          Errc::io,
          fmt::format("cannot trust the medium: bytes [{}, {}) of {} ({}, {}) hash to {}, "
                      "but those written hash to {}; nothing was committed",
                      begin,
                      is_chunked(extent)
                          ? begin + again.frames()[static_cast<std::size_t>(extent.first_frame + k)]
                                        .length_bytes
                          : std::min(begin + ExtentMap::block_bytes,
                                     extent.offset_bytes + extent.length_bytes),
                      map_.files()[extent.file].name, to_string(target_.tensors[extent.tensor]),
                      to_string(extent.box), to_string(again.block(number, k)), to_string(written)),
          "RM207");
    }
  }
}

}  // namespace remesh::detail
