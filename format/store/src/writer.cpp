#include "remesh/store/writer.hpp"

#include <fmt/format.h>

#include "remesh/core/error.hpp"
#include "remesh/schema/runs.hpp"
#include "remesh/store/chunks.hpp"

namespace remesh {
namespace {

[[noreturn]] void fail_misplaced(const TensorDesc& desc, const Box& box, const char* found) {
  throw Error(Errc::internal, fmt::format("cannot write {} of {}: {}; this is a bug in remesh",
                                          to_string(box), to_string(desc), found));
}

}  // namespace

std::vector<StoredAt> places_of(const ExtentMap& extents, std::size_t tensor,
                                const TensorDesc& desc, const Box& box) {
  if (box.empty()) return {};
  const ByteView view = byte_view(desc, box);

  std::vector<StoredAt> places;
  for (const std::uint32_t number : extents.of(tensor)) {
    const Extent& extent = extents.extents()[number];
    if (is_chunked(extent) || !contains(extent.box, box)) continue;
    const Box whole = byte_view(desc, extent.box).box;
    const auto offset = contiguous_in(whole, view.box, view.element_bytes);
    if (!offset) fail_misplaced(desc, box, "its elements do not lie together in their piece");
    places.push_back({extent.file, extent.offset_bytes + *offset});
  }
  if (places.empty() && frames_of(extents, tensor, desc, box).empty()) {
    fail_misplaced(desc, box, "no piece contains it");
  }
  return places;
}

std::vector<std::int64_t> frames_of(const ExtentMap& extents, std::size_t tensor,
                                    const TensorDesc& desc, const Box& box) {
  std::vector<std::int64_t> frames;
  for (const std::uint32_t number : extents.of(tensor)) {
    const Extent& extent = extents.extents()[number];
    if (!is_chunked(extent) || box.empty() || !contains(extent.box, box)) continue;
    const auto begin = contiguous_in(extent.box, box, bits(desc.dtype) / 8);
    const std::int64_t k = begin ? chunk_at(desc.dtype, extent, *begin) : 0;
    if (!begin || chunk_box(extent, k) != box) {
      fail_misplaced(desc, box, "it is no chunk of its piece");
    }
    frames.push_back(extent.first_frame + k);
  }
  return frames;
}

std::vector<std::byte> bytes_of(const SideSource& source, const SideFile& side) {
  std::vector<std::byte> bytes = source(side);
  const Digest found = digest_of(bytes);
  if (std::ssize(bytes) == side.size_bytes && found == side.digest) return bytes;
  throw Error(Errc::corrupt,
              fmt::format("cannot copy the side file '{}': its {} bytes hash to {}, but {} bytes "
                          "with {} are expected; it changed while it was read",
                          side.name, bytes.size(), to_string(found), side.size_bytes,
                          to_string(side.digest)),
              "RM207");
}

}  // namespace remesh
