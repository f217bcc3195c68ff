#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "arbitrary.hpp"
#include "numbered_tensor.hpp"
#include "remesh/store/writer.hpp"

namespace remesh::test {

/// What a Writer is sealed with.
struct Seals {
  std::vector<Digest> digests;
  std::vector<Digest> block_crcs;
};

/// The digests of numbered tensors, and the CRCs of all blocks of the map, from the numbers alone.
inline Seals seals_of(const Catalog& catalog, const ExtentMap& extents) {
  Seals seals;
  for (const TensorDesc& desc : catalog.tensors) {
    seals.digests.push_back(digest_of(numbered(desc)));
  }
  for (const Extent& extent : extents.extents()) {
    const std::vector<std::byte> bytes = numbered(catalog.tensors[extent.tensor], extent.box);
    std::span<const std::byte> left = bytes;
    while (!left.empty()) {
      const auto block =
          left.first(std::min(left.size(), static_cast<std::size_t>(ExtentMap::block_bytes)));
      seals.block_crcs.push_back(digest_of(block));
      left = left.subspan(block.size());
    }
  }
  return seals;
}

/// Writes every tensor of the writer's catalog, numbered, in panels of any size and order.
inline void write_numbered(Writer& writer, Arbitrary& arbitrary, const Tap& tap) {
  struct Panel {
    std::size_t tensor;
    Box box;
  };
  std::vector<Panel> panels;
  for (const Extent& extent : writer.extents().extents()) {
    if (extent.copy != 0) continue;
    const bool narrow = bits(writer.catalog().tensors[extent.tensor].dtype) % 8 != 0;
    const std::vector<Box> boxes = narrow ? std::vector{extent.box} : arbitrary.panels(extent.box);
    for (const Box& box : boxes) panels.push_back({extent.tensor, box});
  }
  arbitrary.shuffle(panels);
  for (const Panel& panel : panels) {
    writer.write(panel.tensor, panel.box,
                 numbered(writer.catalog().tensors[panel.tensor], panel.box), tap);
  }
}

/// The same, and seals it.
inline void write_and_seal_numbered(Writer& writer, Arbitrary& arbitrary) {
  write_numbered(writer, arbitrary, {});
  const Seals seals = seals_of(writer.catalog(), writer.extents());
  writer.seal(seals.digests, seals.block_crcs);
}

}  // namespace remesh::test
