#pragma once

#include <cstdint>
#include <vector>

#include "remesh/store/reader.hpp"
#include "remesh/verify/verify.hpp"

namespace remesh::detail {

/// What a tensor's slices hash to: of a matrix its rows and its columns. Every element counts, with
/// its place in the slice. So a slice keeps its hash when slices change places, and rows of a
/// matrix hash to what the columns of its transpose do.
struct SliceHashes {
  std::vector<std::vector<std::uint64_t>> of_dim;  ///< for each dim, one for each index
  /// How many bits an element tells, at least, judged by a sample of them: 0 if all are alike.
  double element_bits = 0;
};

/// Whether slices can be hashed: the tensor has elements and dims, of whole bytes, and what is to
/// be held for two of them is a small part of the budget, whatever else is held.
bool can_hash_slices(const MemoryBudget& budget, const TensorDesc& desc);

/// Reads a tensor once, by panels and in parallel. Neither threads nor extents change the result.
/// Throws as Reader::read and MemoryBudget::reserve do, and Error(stopped).
/// Precondition: can_hash_slices.
SliceHashes hash_slices(const JudgeContext& context, const Reader& reader, std::size_t tensor);

}  // namespace remesh::detail
