#include "storage_plan.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "remesh/schema/pieces.hpp"
#include "remesh/schema/runs.hpp"
#include "remesh/store/chunks.hpp"

namespace remesh::native {
namespace {

class StoragePlan {
 public:
  StoragePlan(const Catalog& catalog, std::int64_t copies, bool in_chunks)
      : catalog_(catalog),
        in_chunks_(in_chunks),
        copies_(static_cast<std::size_t>(std::max<std::int64_t>(1, copies))),
        pieces_(catalog.layout, catalog.tensors),
        stored_bytes_(static_cast<std::size_t>(catalog.layout.mesh().num_ranks())),
        drafts_(stored_bytes_.size()) {}

  void add(std::uint32_t tensor) {
    const TensorDesc& desc = catalog_.tensors[tensor];
    for (HeldBox& held : pieces_.of(tensor)) {
      byte_view(desc, held.box);  // throws if a border falls within a byte
      const std::int64_t bytes = num_bytes(desc.dtype, held.box);
      const auto chosen = least_loaded(held.holders);
      for (std::size_t copy = 0; copy < chosen.size(); ++copy) {
        store(chosen[copy], {tensor, desc},
              {.copy = static_cast<std::uint32_t>(copy), .length_bytes = bytes, .box = held.box});
      }
    }
  }

  std::vector<ShardDraft> take() {
    const auto ranks = static_cast<Index>(drafts_.size());
    for (std::size_t rank = 0; rank < drafts_.size(); ++rank) {
      drafts_[rank].header.rank = static_cast<Rank>(rank);
      drafts_[rank].header.ranks = ranks;
    }
    std::erase_if(drafts_, [](const ShardDraft& draft) { return draft.index.extents.empty(); });
    return std::move(drafts_);
  }

 private:
  std::span<const Rank> least_loaded(std::vector<Rank>& holders) const {
    const std::size_t count = std::min(copies_, holders.size());
    const auto load = [this](Rank rank) {
      return std::pair(stored_bytes_[static_cast<std::size_t>(rank)], rank);
    };
    std::ranges::partial_sort(holders, holders.begin() + static_cast<std::ptrdiff_t>(count), {},
                              load);
    return std::span(holders).first(count);
  }

  void store(Rank rank, ShardTensor tensor, Extent extent) {
    const auto at = static_cast<std::size_t>(rank);
    ShardIndex& index = drafts_[at].index;
    if (index.tensors.empty() || index.tensors.back().number != tensor.number) {
      index.tensors.push_back(std::move(tensor));
    }
    stored_bytes_[at] += extent.length_bytes;
    extent.tensor = static_cast<std::uint32_t>(index.tensors.size() - 1);
    extent.rank = rank;
    const DType dtype = index.tensors.back().desc.dtype;
    if (in_chunks_ && extent.length_bytes >= least_chunked_bytes && bits(dtype) % 8 == 0) {
      const ChunkRule rule = chunk_rule(dtype, extent.box);
      extent.chunk_dim = rule.dim;
      extent.chunk_size = rule.size;
    }
    index.extents.push_back(extent);
  }

  const Catalog& catalog_;
  const bool in_chunks_;
  const std::size_t copies_;
  const Pieces pieces_;
  std::vector<std::int64_t> stored_bytes_;
  std::vector<ShardDraft> drafts_;
};

}  // namespace

std::vector<ShardDraft> plan_storage(const Catalog& catalog, std::int64_t copies, bool in_chunks) {
  StoragePlan plan(catalog, copies, in_chunks);
  for (std::uint32_t tensor = 0; tensor < catalog.tensors.size(); ++tensor) plan.add(tensor);
  return plan.take();
}

}  // namespace remesh::native
