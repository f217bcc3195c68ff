#include "named_source.hpp"

#include <algorithm>

namespace remesh::detail {

std::string other_copies(const NamedSource& source, std::size_t tensor) {
  const ExtentMap& map = source.reader.extents();
  const bool is_alone = std::ranges::all_of(
      map.of(tensor), [&](std::uint32_t number) { return map.extents()[number].copy == 0; });
  if (is_alone || source.copies_chosen) return {};
  return "; only copy 0 was read, and others are stored: `--replicas first` takes the first that "
         "is what was recorded, `--replicas majority` what most of these hold, and "
         "`--check-replicas` tells which differ";
}

}  // namespace remesh::detail
