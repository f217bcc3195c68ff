#include "extent_map_builder.hpp"

#include <utility>

namespace remesh::native {
namespace {

// One shard's may be most of what there is: it is not copied.
template <typename T>
void append(std::vector<T>& all, std::vector<T> more) {
  if (all.empty()) {
    all = std::move(more);
  } else {
    all.insert(all.end(), more.begin(), more.end());
  }
}

}  // namespace

std::uint32_t ExtentMapBuilder::add_file(std::string name, std::int64_t size_bytes) {
  files_.push_back({std::move(name), size_bytes});
  return static_cast<std::uint32_t>(files_.size() - 1);
}

void ExtentMapBuilder::add_shard(std::uint32_t file, const ShardHeader& header, ShardIndex index) {
  if (header.sealed) {
    add_guard({file, complement(header.file_bytes, index), header.complement_crc,
               "HDF5 metadata, gaps and index"});
  }
  const auto first_block = static_cast<std::int64_t>(block_crcs_.size());
  const auto first_frame = static_cast<std::int64_t>(frames_.size());
  for (Extent& extent : index.extents) {
    extent.tensor = index.tensors[extent.tensor].number;
    extent.file = file;
    if (is_chunked(extent)) extent.first_frame += first_frame;
    extent.first_block = header.sealed ? extent.first_block + first_block : -1;
  }
  append(extents_, std::move(index.extents));
  append(frames_, std::move(index.frames));
  if (header.sealed) append(block_crcs_, std::move(index.block_crcs));
}

ExtentMap ExtentMapBuilder::take() {
  return {std::move(files_), std::move(extents_), std::move(block_crcs_), std::move(guards_),
          std::move(frames_)};
}

}  // namespace remesh::native
