#include "uneven.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "local.hpp"
#include "ranges.hpp"

namespace remesh::detail {
namespace {

// "129 x 3, 128": equal neighbours once, with their number where there are more than four parts.
std::string parts_text(const std::vector<Index>& parts) {
  if (parts.size() <= 4) return fmt::format("{}", fmt::join(parts, ", "));
  std::string text;
  for (auto first = parts.begin(); first != parts.end();) {
    const auto last = std::find_if(first, parts.end(), [&](Index part) { return part != *first; });
    text += fmt::format("{}{}", text.empty() ? "" : ", ", *first);
    if (last - first > 1) text += fmt::format(" x {}", last - first);
    first = last;
  }
  return text;
}

}  // namespace

UnevenSplits::UnevenSplits(const Layout& layout) : layout_(layout) {
  const std::vector<Index>& layers = layout.stages().layers;
  if (!layers.empty() && std::ranges::count(layers, layers.front()) != std::ssize(layers)) {
    const Index chunks = layout.mesh().virtual_stages();
    add("layers", layout.stages().num_layers(),
        chunks == 1 ? fmt::format("pp {}", layers.size())
                    : fmt::format("pp {} x vpp {}", layout.mesh().size("pp"), chunks),
        layers);
  }
}

void UnevenSplits::look_at(const Placement& placement, const TensorDesc& desc) {
  // What the splits so far give to the first of those who share it.
  std::vector<std::vector<Range>> left;
  left.reserve(static_cast<std::size_t>(desc.extent.ndim()));
  for (int dim = 0; dim < desc.extent.ndim(); ++dim) left.push_back({desc.extent[dim]});
  for (const Split& split : placement.splits) {
    const Index count = joint_of(split.over, layout_.mesh(), 0).count;
    std::vector<Range>& ranges = left.at(static_cast<std::size_t>(split.dim));
    const Scaled* const scaled = scaled_dim(placement, split.dim);
    const auto share = [&](const std::vector<Range>& of, Index at) {
      return scaled == nullptr ? split_ranges(split, of, count, at)
                               : split_ranges(split, *scaled, of, count, at);
    };
    const std::vector<Range> before = ranges;
    ranges = share(before, 0);
    const Index total = size_of(before);
    if (split.groups != 0 || total % count == 0) continue;
    std::vector<Index> parts;
    for (Index at = 0; at < count; ++at) {
      parts.push_back(size_of(share(before, at)));
    }
    const std::string what =
        split.unit.empty() ? fmt::format("dim {} of '{}'", split.dim, desc.name) : split.unit;
    add(what, total, fmt::format("{} {}", fmt::join(split.over, "*"), count), parts);
  }
}

void UnevenSplits::add(std::string what, Index total, const std::string& over,
                       const std::vector<Index>& parts) {
  std::string text = fmt::format("{} {} over {}: {}", what, total, over, parts_text(parts));
  if (seen_.insert(text).second) texts_.push_back(std::move(text));
}

}  // namespace remesh::detail
