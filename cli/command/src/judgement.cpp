#include "judgement.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace remesh {

const Side& side_of(const Judgement& judgement, const Finding& finding) {
  const bool is_right = finding.side == "right" && judgement.sides.size() > 1;
  return judgement.sides[is_right ? 1 : 0];
}

std::size_t group_of(const Judgement& judgement, const Finding& finding) {
  const auto& groups = judgement.groups;
  const auto found = std::ranges::find(groups, finding.side, &CheckGroup::side);
  return static_cast<std::size_t>(found - groups.begin()) -
         (found == groups.end() && !groups.empty() ? 1U : 0U);
}

std::string title_of(const Judgement& judgement) {
  const std::string& left = judgement.sides.front().path;
  if (judgement.sides.size() < 2) return left;
  return fmt::format("{} against {}", left, judgement.sides[1].path);
}

}  // namespace remesh
