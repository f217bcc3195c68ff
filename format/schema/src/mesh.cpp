#include "remesh/schema/mesh.hpp"

#include <utility>

#include <fmt/format.h>

#include "remesh/core/error.hpp"

namespace remesh {
namespace {

constexpr Index most_ranks = Index{1} << 31;

void check_axis(const Axis& axis, Index ranks_so_far) {
  if (axis.size < 1) {
    throw Error(Errc::invalid_argument,
                fmt::format("cannot build a mesh: axis '{}' has size {}, but a size is at least 1",
                            axis.name, axis.size));
  }
  if (axis.size > most_ranks / ranks_so_far) {
    throw Error(Errc::invalid_argument,
                fmt::format("cannot build a mesh: with axis '{}' of size {} it has more than {} "
                            "ranks",
                            axis.name, axis.size, most_ranks));
  }
}

}  // namespace

Mesh::Mesh(std::vector<Axis> axes_fastest_first) : axes_(std::move(axes_fastest_first)) {
  Index ranks = 1;
  for (auto axis = axes_.begin(); axis != axes_.end(); ++axis) {
    check_axis(*axis, ranks);
    ranks *= axis->size;
    for (auto earlier = axes_.begin(); earlier != axis; ++earlier) {
      if (earlier->name == axis->name) {
        throw Error(Errc::invalid_argument,
                    fmt::format("cannot build a mesh: axis '{}' stands twice", axis->name));
      }
    }
  }
}

Index Mesh::num_ranks() const noexcept {
  Index ranks = 1;
  for (const Axis& axis : axes_) ranks *= axis.size;
  return ranks;
}

Index Mesh::size(std::string_view axis) const noexcept {
  for (const Axis& candidate : axes_) {
    if (candidate.name == axis) return candidate.size;
  }
  return 1;
}

Index Mesh::coordinate(Rank rank, std::string_view axis) const noexcept {
  for (const Axis& candidate : axes_) {
    if (candidate.name == axis) return rank % candidate.size;
    rank /= candidate.size;
  }
  return 0;
}

std::string describe(const Mesh& mesh) {
  const Index ranks = mesh.num_ranks();
  if (mesh.axes().empty()) return "1 rank";
  std::string sizes;
  std::string order;
  for (const Axis& axis : mesh.axes()) {
    sizes += fmt::format("{}{}={}", sizes.empty() ? "" : ",", axis.name, axis.size);
    order += fmt::format("{}{}", order.empty() ? "" : "-", axis.name);
  }
  return fmt::format("{} ({} {}, order {})", sizes, ranks, ranks == 1 ? "rank" : "ranks", order);
}

}  // namespace remesh
