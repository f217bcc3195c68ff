#include "extent_map_builder.hpp"

#include <utility>

namespace remesh::native {

std::uint32_t ExtentMapBuilder::add_file(std::string name, std::int64_t size_bytes) {
  files_.push_back({std::move(name), size_bytes});
  return static_cast<std::uint32_t>(files_.size() - 1);
}

void ExtentMapBuilder::add_shard(std::uint32_t file, const ShardHeader& header,
                                 const ShardIndex& index) {
  const auto first_block = static_cast<std::int64_t>(block_crcs_.size());
  for (Extent extent : index.extents) {
    extent.tensor = index.tensors[extent.tensor].number;
    extent.file = file;
    extent.first_block = header.sealed ? extent.first_block + first_block : -1;
    extents_.push_back(extent);
  }
  if (!header.sealed) return;
  block_crcs_.insert(block_crcs_.end(), index.block_crcs.begin(), index.block_crcs.end());
  add_guard({file, complement(header.file_bytes, index.extents), header.complement_crc,
             "HDF5 metadata, gaps and index"});
}

ExtentMap ExtentMapBuilder::take() {
  return {std::move(files_), std::move(extents_), std::move(block_crcs_), std::move(guards_)};
}

}  // namespace remesh::native
