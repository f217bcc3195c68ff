#pragma once

#include <span>

#include "complaints.hpp"
#include "remesh/schema/catalog.hpp"
#include "remesh/store/extents.hpp"

namespace remesh::native {

/// Holds what the shards store against the layout that the manifest states: every stored box is one
/// that its rank holds, or, where boxes of ranks overlap, any part of it that crosses no border of
/// another (SPEC.md, 4.4), none is stored twice as the same copy (RM304), and together they are
/// every tensor, whole (RM301 with the box that is missing). What the shards of `unread_ranks`
/// would hold is not missed: those have been reported. O(extents).
void check_placement(const Catalog& catalog, const ExtentMap& extents,
                     std::span<const Rank> unread_ranks, const Complaints& complaints);

}  // namespace remesh::native
