#include "judgement.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace remesh {

const Side& side_of(const Judgement& judgement, const Finding& finding) {
  const auto own = std::ranges::find(judgement.sides, finding.side, &Side::name);
  return own == judgement.sides.end() ? judgement.sides.front() : *own;
}

const Side& drawn_side(const Judgement& judgement) {
  const auto named = std::ranges::find(judgement.sides, judgement.drawn, &Side::name);
  return named == judgement.sides.end() ? judgement.sides.front() : *named;
}

std::size_t group_of(const Judgement& judgement, const Finding& finding) {
  const auto& groups = judgement.groups;
  const auto found = std::ranges::find(groups, finding.side, &CheckGroup::side);
  return static_cast<std::size_t>(found - groups.begin()) -
         (found == groups.end() && !groups.empty() ? 1U : 0U);
}

std::vector<const Finding*> gravest_first(const Judgement& judgement) {
  std::vector<const Finding*> all;
  all.reserve(judgement.findings.size());
  for (const Finding& finding : judgement.findings) all.push_back(&finding);
  std::ranges::stable_sort(all, [](const Finding* a, const Finding* b) {
    return a->severity != b->severity ? a->severity > b->severity : a->id < b->id;
  });
  return all;
}

std::string title_of(const Side& left, const Side& right) {
  return fmt::format("{} against {}", left.path, right.path);
}

bool is_of_opened(const Finding& finding, std::span<const Side> sides) {
  const auto own = std::ranges::find(sides, finding.side, &Side::name);
  return own != sides.end() ? own->opened : std::ranges::all_of(sides, &Side::opened);
}

}  // namespace remesh
