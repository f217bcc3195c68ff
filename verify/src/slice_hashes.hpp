#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "remesh/store/reader.hpp"
#include "remesh/verify/verify.hpp"

namespace remesh::detail {

/// What a tensor's slices hash to: of a matrix its rows and its columns. Every element counts, with
/// its place in the slice. So a slice keeps its hash when slices change places, and the last two
/// dims of a tensor exchange theirs when it is transposed.
struct SliceHashes {
  std::vector<std::vector<std::uint64_t>> of_dim;  ///< for each dim, one for each index
  /// How many bits an element tells, at least, judged by a sample of them: 0 if all are alike.
  double element_bits = 0;
};

/// What the hashes of two such tensors take, and finding out what they have in common.
std::int64_t slices_bytes(const TensorDesc& desc);

/// Whether slices can be hashed: the tensor has elements and dims, of whole bytes, and slices_bytes
/// are a quarter of the budget at most, whatever else is held.
bool can_hash_slices(const MemoryBudget& budget, const TensorDesc& desc);

/// Reads a tensor once, by panels and in parallel, by as many workers as another quarter of the
/// budget is enough for. Neither threads nor extents change the result.
/// Throws as Reader::read and MemoryBudget::reserve do, and Error(stopped).
/// Precondition: can_hash_slices.
SliceHashes hash_slices(const JudgeContext& context, const Reader& reader, std::size_t tensor);

}  // namespace remesh::detail
