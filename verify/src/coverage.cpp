#include "coverage.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "remesh/schema/coverage.hpp"

namespace remesh::detail {
namespace {

std::vector<const Extent*> first_copies(const Reader& reader, std::size_t tensor) {
  std::vector<const Extent*> pieces;
  for (const std::uint32_t number : reader.extents().of(tensor)) {
    const Extent& extent = reader.extents().extents()[number];
    if (extent.copy == 0) pieces.push_back(&extent);
  }
  return pieces;
}

Index elements_of(const std::vector<Box>& boxes) {
  Index elements = 0;
  for (const Box& box : boxes) elements += box.num_elements();
  return elements;
}

// A finding about one stored piece; what is wrong with it is yet to be said.
Finding about(const char* id, const TensorDesc& desc, const Extent& extent, const ExtentMap& map) {
  Finding finding;
  finding.id = id;
  finding.file = map.files()[extent.file].name;
  finding.bytes = ByteRange{extent.offset_bytes, extent.offset_bytes + extent.length_bytes};
  finding.tensor = desc.name;
  finding.box = extent.box;
  return finding;
}

Finding doubled(const TensorDesc& desc, const Extent& extent, const ExtentMap& map) {
  Finding finding = about("RM304", desc, extent, map);
  finding.message = fmt::format("{}: the piece {} in {} has elements that another piece has too",
                                to_string(desc), to_string(extent.box), finding.file);
  return finding;
}

Finding hole(const TensorDesc& desc, const Box& gap) {
  Finding finding;
  finding.id = "RM301";
  finding.tensor = desc.name;
  finding.box = gap;
  finding.message =
      fmt::format("{}: no piece holds {}; is a file missing?", to_string(desc), to_string(gap));
  finding.expected = fmt::format("{} elements", gap.num_elements());
  finding.found = "0 elements";
  finding.next_step = "copy the checkpoint again from where it was written, or use another save";
  return finding;
}

void check_tensor(const Reader& reader, std::size_t tensor, Findings& findings) {
  const TensorDesc& desc = reader.catalog().tensors[tensor];
  const std::vector<const Extent*> pieces = first_copies(reader, tensor);
  if (pieces.size() == 1 && pieces.front()->box == desc.extent) return;
  std::vector<Box> boxes;
  boxes.reserve(pieces.size());
  for (const Extent* piece : pieces) boxes.push_back(piece->box);
  if (cover(desc.extent, boxes).exact()) return;
  // Which piece it is takes longer, and is asked for where something is wrong.
  std::vector<Box> gaps;
  if (!desc.extent.empty()) gaps.push_back(desc.extent);
  for (const Extent* piece : pieces) {
    std::vector<Box> rest = without(gaps, piece->box);
    if (elements_of(gaps) - elements_of(rest) != piece->box.num_elements()) {
      findings.add(doubled(desc, *piece, reader.extents()));
    }
    gaps = std::move(rest);
  }
  for (const Box& gap : gaps) findings.add(hole(desc, gap));
}

}  // namespace

void check_coverage(const Reader& reader, const std::set<std::string>& known, Findings& findings) {
  const auto& tensors = reader.catalog().tensors;
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    if (!known.contains(tensors[tensor].name)) check_tensor(reader, tensor, findings);
  }
}

void check_copies(const Reader& reader, Findings& findings) {
  const ExtentMap& map = reader.extents();
  if (map.copies() < 2) return;
  for (const Extent& copy : map.extents()) {
    if (copy.copy == 0) continue;
    const std::vector<const Extent*> firsts = first_copies(reader, copy.tensor);
    const auto first = std::ranges::find(firsts, copy.box, [](const Extent* e) { return e->box; });
    if (first == firsts.end() || std::ranges::equal(map.blocks(**first), map.blocks(copy)))
      continue;
    const TensorDesc& desc = reader.catalog().tensors[copy.tensor];
    Finding finding = about("RM401", desc, copy, map);
    finding.message = fmt::format(
        "{}: copy {} of {}, on rank {}, does not hold the numbers that copy 0 on rank {} holds",
        to_string(desc), copy.copy, to_string(copy.box), copy.rank, (*first)->rank);
    finding.next_step =
        "`--level full` says where they differ first; find out since when they do, and which rank "
        "is right";
    findings.add(std::move(finding));
  }
}

Box touched_box(const TensorDesc& desc, const Box& piece, std::int64_t begin, std::int64_t end) {
  const std::int64_t width = bits(desc.dtype);
  const Box first = element_of(piece, begin * 8 / width);
  const Box last = element_of(piece, (end * 8 - 1) / width);
  Box box = piece;
  for (int dim = 0; dim < piece.ndim(); ++dim) {
    box[dim] = {first[dim].begin, last[dim].end};
    if (first[dim] != last[dim]) break;
  }
  return box;
}

}  // namespace remesh::detail
