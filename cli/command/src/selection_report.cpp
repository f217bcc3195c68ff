#include "selection_report.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "remesh/core/budget.hpp"
#include "text.hpp"

namespace remesh {
namespace {

constexpr std::size_t most_listed = 3;

std::string listed(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), most_listed);
  std::vector<std::string> first;
  for (std::size_t i = 0; i < shown; ++i) first.push_back(escaped(names[i]));
  const std::string more =
      names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : "";
  return joined(first) + more;
}

std::vector<std::string> names_of(const std::vector<Dropped>& dropped) {
  std::vector<std::string> names;
  names.reserve(dropped.size());
  for (const Dropped& each : dropped) names.push_back(each.name);
  return names;
}

// Those of the source that the selection does not leave out.
std::vector<std::string> carried(const Job& job, const Left& left) {
  std::vector<std::string> names;
  for (const SideFile& side : job.source->catalog().side) {
    if (std::ranges::find(left.side, side.name, &Dropped::name) == left.side.end())
      names.push_back(side.name);
  }
  return names;
}

}  // namespace

void print_selection(const Job& job, const Wanted& wanted, Output& out) {
  const Left& left = wanted.left;
  if (!left.tensors.empty()) {
    out.detail(fmt::format("left out: {}, {}: {}", counted(std::ssize(left.tensors), "tensor"),
                           format_bytes(left.bytes), listed(names_of(left.tensors))));
  }
  if (!left.side.empty()) out.detail("left out: " + listed(names_of(left.side)));
  if (left.cast_tensors > 0) {
    out.detail(fmt::format(
        "cast to {}: {}{}", to_string(*job.selection.dtype), counted(left.cast_tensors, "tensor"),
        job.config.empty() ? ""
                           : "; config.json is carried as it is: a dtype that it "
                             "names may be what loaders cast back to"));
  }
  if (left.uncast_tensors > 0) {
    out.detail(fmt::format("kept their dtype: {}, which are no f64, f32, f16 or bf16",
                           counted(left.uncast_tensors, "parameter")));
  }
  if (const auto names = carried(job, left); !names.empty()) {
    out.detail(fmt::format("carried as they are: {}: {}", counted(std::ssize(names), "side file"),
                           listed(names)));
  }
}

void add_selection(const Job& job, const Left& left, Json& document) {
  document["left_out"] = {
      {"tensors", left.tensors.size()}, {"bytes", left.bytes}, {"side_files", names_of(left.side)}};
  document["cast_tensors"] = left.cast_tensors;
  document["side_files"] = carried(job, left);
}

}  // namespace remesh
