#include "diff_judgement.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "layers.hpp"
#include "remesh/core/budget.hpp"
#include "text.hpp"

namespace remesh {
namespace {

Side side_of(const DiffSide& side, const char* name) {
  const Catalog& catalog = side.reader.catalog();
  Side described;
  described.path = side.path;
  described.format = catalog.format;
  described.mesh = catalog.layout.mesh();
  described.opened = true;
  described.layer_bytes = bytes_by_layer(catalog.tensors);
  described.name = name;
  return described;
}

Finding about(const char* id, const TensorDesc& desc, std::string message) {
  Finding finding;
  finding.id = id;
  finding.tensor = desc.name;
  finding.box = desc.extent;
  finding.message = std::move(message);
  return finding;
}

Finding different(const TensorDiff& tensor, const TensorDesc& left, const TensorDesc& right) {
  if (left.dtype != right.dtype || left.extent != right.extent) {
    return about("RM303", left,
                 fmt::format("{}: the right checkpoint has {}", to_string(left), to_string(right)));
  }
  std::string message = fmt::format("{}: {} of {} elements differ", to_string(left),
                                    tensor.differing, tensor.elements);
  if (tensor.max_ulps) message += fmt::format(", by at most {} ulps", *tensor.max_ulps);
  if (const Index wild = tensor.nans + tensor.infinite; wild > 0) {
    message += fmt::format(", {} of them NaN or infinite", wild);
  }
  Finding finding = about("RM311", left, std::move(message));
  if (tensor.first) {
    const std::vector<Index>& index = tensor.first->index;
    Box place = Box::of_ndim(index.size());
    for (std::size_t dim = 0; dim < index.size(); ++dim) {
      place[static_cast<int>(dim)] = {index[dim], index[dim] + 1};
    }
    finding.box = place;
    finding.found = tensor.first->left;
    finding.expected = tensor.first->right;
  }
  return finding;
}

}  // namespace

Judgement judgement_of(const Differences& differences) {
  const Diff& diff = differences.diff;
  const auto& left = differences.left.reader.catalog().tensors;
  const auto& right = differences.right.reader.catalog().tensors;
  Judgement judgement;
  judgement.verb = "diff";
  judgement.sides = {side_of(differences.left, "left"), side_of(differences.right, "right")};
  judgement.title = title_of(judgement.sides[0], judgement.sides[1]);
  judgement.groups.push_back({judgement.title, "", "3"});
  judgement.seconds = differences.seconds;
  for (const TensorDiff& tensor : diff.tensors) {
    if (tensor.likeness == Likeness::equal || tensor.likeness == Likeness::within) continue;
    judgement.findings.push_back(different(tensor, left[tensor.left], right[tensor.right]));
    Finding& finding = judgement.findings.back();
    if (finding.id == "RM311") finding.next_step = differences.next_step;
  }
  for (const std::size_t k : diff.only_left) {
    judgement.findings.push_back(
        about("RM302", left[k], fmt::format("{}: only the left side has it", to_string(left[k]))));
  }
  for (const std::size_t k : diff.only_right) {
    judgement.findings.push_back(about(
        "RM310", right[k], fmt::format("{}: only the right side has it", to_string(right[k]))));
    judgement.findings.back().side = "right";
  }
  const auto equal = diff.count(Likeness::equal) + diff.count(Likeness::within);
  judgement.facts = {{"left", differences.left.path},
                     {"right", differences.right.path},
                     {"left mesh", describe(differences.left.reader.catalog().layout.mesh())},
                     {"right mesh", describe(differences.right.reader.catalog().layout.mesh())},
                     {"equal or within the tolerance",
                      fmt::format("{} of {}", equal, counted(std::ssize(diff.tensors), "tensor"))},
                     {"bytes read", format_bytes(diff.bytes_read)},
                     {"seconds", fmt::format("{:.2f}", differences.seconds)}};
  return judgement;
}

}  // namespace remesh
