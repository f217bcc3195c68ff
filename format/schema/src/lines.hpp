#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "remesh/schema/layout.hpp"

namespace remesh::detail {

/// Whether some placement of the layout is flat.
bool has_lines(const Layout& layout);

/// Which tensors follow each other on which line, and where each begins. Lines differ from rank to
/// rank, but not along the axes over which they are divided: they are worked out once for each set
/// of such ranks, when the first of them is asked for.
class Lines {
 public:
  /// Both must outlive it. Throws Error(invalid_argument) where a tensor is on a line together with
  /// others of another layer, or its numbers are impossible.
  Lines(const Layout& layout, std::span<const TensorDesc> tensors);

  /// Which elements of `tensor` the rank holds, of the `num_elements` that it would have without
  /// the line. Precondition: its placement is flat.
  Range range_of(std::size_t tensor, Rank rank, Index num_elements) const;

 private:
  // Where a tensor stands in its bucket.
  struct Place {
    Index begin = 0;
    std::uint32_t bucket = 0;
  };
  struct Line {
    std::map<std::uint32_t, Place> places;  // by tensor; only those that the ranks have
    std::vector<Index> buckets;             // their lengths, paddings included
  };

  const Line& line_for(std::uint32_t number, Rank rank) const;
  Line work_out(const std::vector<std::uint32_t>& members, Rank rank) const;
  Rank first_of_set(const Flat& flat, Rank rank) const;

  const Layout& layout_;
  std::span<const TensorDesc> tensors_;
  std::vector<std::vector<std::uint32_t>> members_;  // of each line with several tensors, in order
  std::vector<std::uint32_t> line_of_;               // for each tensor
  mutable std::mutex mutex_;
  mutable std::map<std::pair<std::uint32_t, Rank>, std::unique_ptr<const Line>> lines_;
};

}  // namespace remesh::detail
