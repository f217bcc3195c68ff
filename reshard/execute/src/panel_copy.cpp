#include "panel_copy.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/error.hpp"
#include "remesh/plan/panels.hpp"
#include "remesh/plan/plan.hpp"
#include "remesh/schema/cast.hpp"
#include "remesh/schema/runs.hpp"
#include "remesh/store/chunks.hpp"

namespace remesh::detail {
namespace {

// The part of one stored piece that lies in the panel, and its packed bytes.
struct Chunk {
  Box box;
  std::span<std::byte> bytes;
};

// The distinct stored boxes of a tensor, cut to the panel, and their numbers among all of them in
// the order of boxes. Copies of a box count once.
struct CutBoxes {
  std::vector<Box> boxes;
  std::vector<std::size_t> numbers;
  std::vector<std::uint32_t> files;
};

CutBoxes boxes_in(const ExtentMap& map, std::size_t tensor, const Box& panel) {
  CutBoxes cut;
  std::size_t number = 0;
  for (const std::uint32_t at : map.of(tensor)) {
    const Extent& extent = map.extents()[at];
    if (extent.copy != 0) continue;
    if (const auto part = intersect(extent.box, panel)) {
      cut.boxes.push_back(*part);
      cut.numbers.push_back(number);
      cut.files.push_back(extent.file);
    }
    ++number;
  }
  return cut;
}

// How many of the ranks that want a piece have held the other one before.
std::int64_t count_common(const std::vector<Rank>& before, const std::vector<Rank>& after) {
  std::int64_t count = 0;
  auto at = before.begin();
  for (const Rank rank : after) {
    at = std::lower_bound(at, before.end(), rank);
    if (at != before.end() && *at == rank) ++count;
  }
  return count;
}

// Deals consecutive parts of a buffer to boxes.
class Dealer {
 public:
  Dealer(DType dtype, Buffer& buffer) : dtype_(dtype), rest_(buffer.bytes()) {}

  Chunk deal(const Box& box) {
    const auto bytes = static_cast<std::size_t>(num_bytes(dtype_, box));
    const Chunk chunk{box, rest_.first(bytes)};
    rest_ = rest_.subspan(bytes);
    return chunk;
  }

 private:
  const DType dtype_;
  std::span<std::byte> rest_;
};

double value_of(DType dtype, std::span<const std::byte> bytes) {
  double value = 0;
  const auto into = std::as_writable_bytes(std::span(&value, 1));
  if (dtype == DType::f64) {
    std::ranges::copy(bytes, into.begin());
  } else {
    cast(dtype, bytes, DType::f64, into);
  }
  return value;
}

// The largest value of a dtype to which one can cast: all ones but the exponent's last bit.
double largest(DType dtype) {
  const std::uint64_t bits = dtype == DType::f16    ? 0x7bffU
                             : dtype == DType::bf16 ? 0x7f7fU
                                                    : 0x7f7fffffU;
  const auto all = std::as_bytes(std::span(&bits, 1));
  return value_of(dtype, all.first(static_cast<std::size_t>(remesh::bits(dtype) / 8)));
}

[[noreturn]] void fail_beyond(const TensorDesc& desc, const Chunk& chunk, Index number,
                              DType dtype) {
  const auto width = static_cast<std::size_t>(bits(desc.dtype) / 8);
  const double value =
      value_of(desc.dtype, chunk.bytes.subspan(static_cast<std::size_t>(number) * width, width));
  throw Error(Errc::unsupported,
              fmt::format("cannot cast {} to {}: the value at {} is {}, but the largest is {}; "
                          "choose a wider dtype",
                          to_string(desc), to_string(dtype),
                          to_string(element_of(chunk.box, number)), value, largest(dtype)));
}

// Each chunk in another dtype, in the same order.
void cast_chunks(const TensorDesc& desc, DType dtype, Buffer& buffer, std::vector<Chunk>& chunks) {
  Dealer dealer(dtype, buffer);
  for (Chunk& chunk : chunks) {
    const Chunk converted = dealer.deal(chunk.box);
    const CastResult result = cast(desc.dtype, chunk.bytes, dtype, converted.bytes);
    if (result.overflow) fail_beyond(desc, chunk, *result.overflow, dtype);
    chunk = converted;
  }
}

void copy_part(const TensorDesc& desc, const Box& part, const Chunk& from, const Chunk& to) {
  const ByteView view = byte_view(desc, part);
  copy_box(view.box, byte_view(desc, from.box).box, from.bytes.data(), byte_view(desc, to.box).box,
           to.bytes.data(), view.element_bytes);
}

// The panel's rows as one element where elements are narrower than a byte: such a tensor is cut
// between rows only, or not at all.
std::vector<Box> panels_of(const TensorDesc& desc, std::int64_t max_bytes) {
  const int width = bits(desc.dtype);
  if (width % 8 == 0) return panels(desc.extent, width / 8, std::max(max_bytes, std::int64_t{16}));
  if (desc.extent.empty()) return {};
  const int last = desc.extent.ndim() - 1;
  if (last < 0 || desc.extent[last].size() * width % 8 != 0) return {desc.extent};
  const std::int64_t row_bytes = desc.extent[last].size() * width / 8;
  Box rows = desc.extent;
  rows[last] = {0, 1};
  std::vector<Box> cut = panels(rows, row_bytes, std::max(max_bytes, row_bytes));
  for (Box& panel : cut) panel[last] = desc.extent[last];
  return cut;
}

// Piece by piece, in the order in which frames are appended.
std::vector<Box> panels_of_pieces(const TensorDesc& desc, const ExtentMap& extents,
                                  std::span<const std::uint32_t> pieces, std::int64_t max_bytes) {
  std::vector<Box> all;
  for (const std::uint32_t piece : pieces) {
    const Extent& extent = extents.extents()[piece];
    if (extent.copy != 0) break;
    if (!is_chunked(extent)) {
      const std::vector<Box> cut = panels_of({desc.name, desc.dtype, extent.box}, max_bytes);
      all.insert(all.end(), cut.begin(), cut.end());
      continue;
    }
    for (std::int64_t k = 0; k < num_chunks(extent); ++k) all.push_back(chunk_box(extent, k));
  }
  return all;
}

}  // namespace

std::vector<Panel> all_panels(const Catalog& source, const Catalog& target,
                              const ExtentMap& extents, const std::vector<std::size_t>& source_of,
                              std::int64_t max_bytes) {
  const auto panels_of_tensor = [&](std::size_t tensor) {
    const TensorDesc& from = source.tensors[source_of[tensor]];
    const TensorDesc& to = target.tensors[tensor];
    const TensorDesc& wider = bits(from.dtype) > bits(to.dtype) ? from : to;
    const auto pieces = extents.of(tensor);
    const bool in_chunks = std::ranges::any_of(
        pieces, [&](std::uint32_t piece) { return is_chunked(extents.extents()[piece]); });
    return in_chunks ? panels_of_pieces(wider, extents, pieces, max_bytes)
                     : panels_of(wider, max_bytes);
  };
  // Of a large checkpoint they are many: the list takes what it needs, and no more.
  std::size_t count = 0;
  for (std::size_t tensor = 0; tensor < target.tensors.size(); ++tensor) {
    count += panels_of_tensor(tensor).size();
  }
  std::vector<Panel> all;
  all.reserve(count);
  for (std::size_t tensor = 0; tensor < target.tensors.size(); ++tensor) {
    for (const Box& box : panels_of_tensor(tensor)) {
      all.push_back({source_of[tensor], tensor, box});
    }
  }
  return all;
}

std::shared_ptr<const Holders> HoldersOfLanes::of(const Panel& panel) {
  std::unique_lock lock(mutex_);
  if (last_.size() <= panel.lane) last_.resize(panel.lane + 1);
  std::shared_ptr<const Holders> last = last_[panel.lane];
  if (last && last->target_tensor == panel.target_tensor) return last;
  // Two workers may both find out: better than that all wait for one.
  lock.unlock();
  auto holders = std::make_shared<const Holders>(Holders{
      panel.target_tensor, source_.of(panel.source_tensor), target_.of(panel.target_tensor)});
  lock.lock();
  last_[panel.lane] = holders;
  return holders;
}

PanelBytes copy_panel(const Reader& source, Writer& target, const Panel& panel,
                      const Holders& holders, PanelBuffers& buffers, const Tap& on_read,
                      const Tap& on_write) {
  const TensorDesc& stored = source.catalog().tensors[panel.source_tensor];
  const TensorDesc& desc = target.catalog().tensors[panel.target_tensor];
  const CutBoxes from = boxes_in(source.extents(), panel.source_tensor, panel.box);
  const CutBoxes to = boxes_in(target.extents(), panel.target_tensor, panel.box);
  PanelBytes bytes;

  std::vector<Chunk> chunks;
  Dealer source_dealer(stored.dtype, buffers.source);
  for (const Box& box : from.boxes) {
    const Chunk& chunk = chunks.emplace_back(source_dealer.deal(box));
    source.read(panel.source_tensor, box, chunk.bytes, on_read);
    bytes.read += std::ssize(chunk.bytes);
  }
  if (stored.dtype != desc.dtype) cast_chunks(stored, desc.dtype, buffers.cast, chunks);

  Dealer target_dealer(desc.dtype, buffers.target);
  const std::vector<Overlap> shared = overlaps(from.boxes, to.boxes);
  for (const Overlap& part : shared) {
    const auto& before = holders.source.at(from.numbers[part.source]).holders;
    const auto& after = holders.target.at(to.numbers[part.target]).holders;
    const std::int64_t common = count_common(before, after);
    const std::int64_t part_bytes = num_bytes(desc.dtype, part.box);
    bytes.kept += common * part_bytes;
    bytes.moved += (std::ssize(after) - common) * part_bytes;
  }

  // The panel's own file comes first, while other workers write to theirs.
  const auto own = std::ranges::find(to.files, panel.file);
  const auto first = own == to.files.end() ? 0 : static_cast<std::size_t>(own - to.files.begin());
  for (std::size_t i = 0; i < to.boxes.size(); ++i) {
    const std::size_t number = (first + i) % to.boxes.size();
    const Box& box = to.boxes[number];
    const auto begin = std::lower_bound(
        shared.begin(), shared.end(), number,
        [](const Overlap& part, std::size_t wanted) { return part.target < wanted; });
    const auto end = std::find_if(begin, shared.end(),
                                  [&](const Overlap& part) { return part.target != number; });
    if (end - begin == 1 && from.boxes[begin->source] == box) {
      target.write(panel.target_tensor, box, chunks[begin->source].bytes, on_write);
      continue;
    }
    const Chunk packed = target_dealer.deal(box);
    for (auto part = begin; part != end; ++part) {
      copy_part(desc, part->box, chunks[part->source], packed);
    }
    target.write(panel.target_tensor, box, packed.bytes, on_write);
  }
  return bytes;
}

}  // namespace remesh::detail
