#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "remesh/store/extents.hpp"
#include "remesh/store/sweep.hpp"
#include "remesh/verify/report.hpp"

/// @file
/// Which bytes are looked at where not all are.

namespace remesh::detail {

/// One block of one extent, whether a CRC is recorded of it or not.
struct Block {
  std::uint32_t extent = 0;
  std::int64_t number = 0;

  friend auto operator<=>(const Block&, const Block&) = default;
};

/// Where it lies; of an extent in frames, its frame.
Stretch place_of(const ExtentMap& map, const Block& block);

/// Some of a checkpoint's bytes: blocks in file order, and guards by their numbers.
struct Share {
  std::vector<Block> blocks;
  std::vector<std::uint32_t> guards;
};

/// The first and the last block of every file, one in a hundred of the rest, and all guards. Only
/// blocks of which a CRC is recorded.
Share sample_of(const ExtentMap& map);

/// A part of all bytes: of the line of all blocks and then all guards those that begin in the
/// number-th stretch of count stretches of the same length. Each is in exactly one part, and a part
/// is read in long runs.
Share part_of(const ExtentMap& map, const Subset& subset);

/// The numbers of all guards.
std::vector<std::uint32_t> all_guards(const ExtentMap& map);

/// What these guards have, by what files say of themselves: at most 2^62.
std::int64_t bytes_of_guards(const ExtentMap& map, std::span<const std::uint32_t> guards);

}  // namespace remesh::detail
