#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "remesh/store/reader.hpp"
#include "remesh/store/sweep.hpp"

/// @file
/// What several stored copies of the same piece say, where they do not say the same.

namespace remesh {

/// The copies of one piece, of which two differ, or one is not what it was recorded to be.
struct UnlikeCopies {
  /// Extents, by their numbers in the map, that hold the same bytes, and those that their own block
  /// CRCs record, if there are any. The largest group comes first; of equal ones that of the lowest
  /// copy.
  std::vector<std::vector<std::uint32_t>> groups;
  /// Extents whose bytes are not those that were recorded: they vote for nothing.
  std::vector<std::uint32_t> damaged;

  friend bool operator==(const UnlikeCopies&, const UnlikeCopies&) = default;
};

/// Reads every copy of each piece that has several, once, and returns those that are not all the
/// same, in the order of tensors and boxes. Copies are compared by what they hold, however it is
/// compressed. Advances context.progress, which is begun here. Throws as sweep() does.
std::vector<UnlikeCopies> unlike_copies(const SweepContext& context, const Reader& source);

/// A reader of the same checkpoint that takes each of these extents for copy 0 of its piece, in
/// exchange for what was. `source` must outlive it. Precondition: at most one of each piece.
std::unique_ptr<Reader> reader_with_first(const Reader& source,
                                          std::span<const std::uint32_t> firsts);

/// The first element, in row-major order, in which two extents of one piece differ: their numbers
/// in the map. Nothing if they do not, or if a row of them is too large for 64 MiB.
std::optional<Box> first_difference(const Reader& source, std::uint32_t one, std::uint32_t other);

}  // namespace remesh
