#pragma once

#include <set>
#include <string>

#include "remesh/store/reader.hpp"

namespace remesh::detail {

/// Tells `findings` of every box of a tensor that no piece holds (RM301) or that two pieces hold
/// (RM304), by boxes alone. Tensors in `known` were reported before and are passed over.
void check_coverage(const Reader& reader, const std::set<std::string>& known, Findings& findings);

/// Tells `findings` of copies whose recorded block CRCs are not those of copy 0 of the same box
/// (RM401), by what is recorded alone.
void check_copies(const Reader& reader, Findings& findings);

/// The smallest box that contains the elements of which the packed bytes [begin, end) of a piece
/// are made. Precondition: the range is not empty and lies in the piece.
Box touched_box(const TensorDesc& desc, const Box& piece, std::int64_t begin, std::int64_t end);

}  // namespace remesh::detail
