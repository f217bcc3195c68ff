#include "placing.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/error.hpp"

namespace remesh::detail {
namespace {

[[noreturn]] void fail_shape(const TensorDesc& tensor, const std::string& why) {
  throw Error(Errc::corrupt, fmt::format("cannot place {}: {}", to_string(tensor), why), "RM303");
}

std::string texts(const std::vector<Expression>& shape) {
  std::string text;
  for (const Expression& dim : shape) text += (text.empty() ? "" : ", ") + dim.text();
  return text;
}

}  // namespace

std::uint32_t Placing::place(const Claim& claim, const TensorDesc& tensor) {
  const Applied& applied = apply(claim.rule);
  if (claim.is_state && !lies_like(applied, tensor)) {
    return intern(
        {.splits = {}, .pins = placements_[applied.placement].pins, .flat = {}, .scaled = {}});
  }
  check_extent(claim.rule, applied, tensor);
  check_splits(placements_[applied.placement], tensor);
  return applied.placement;
}

const Placing::Applied& Placing::apply(std::uint32_t number) {
  std::optional<Applied>& applied = applied_[number];
  if (applied) return *applied;
  const TensorRule& rule = rules_.tensors[number];
  Placement placement;
  for (const SplitEntry& entry : rule.splits) placement.splits.push_back(split_of(entry));
  placement.scaled = scaled_of(rule);
  if (const auto to = values_.pin(rule.stage)) placement.pins.push_back({"pp", *to, {}, 0});
  if (rule.name.has_expert()) {
    placement.pins.push_back({"ep", PinTo::expert, {}, values_.count(*rules_.experts)});
  }
  applied.emplace();
  if (rule.shape) applied->extent = Box::whole(values_.shape(*rule.shape));
  applied->placement = intern(std::move(placement));
  return *applied;
}

// Whether a state has the shape of its parameter, as far as the rule tells.
bool Placing::lies_like(const Applied& applied, const TensorDesc& tensor) const {
  if (applied.extent) return *applied.extent == tensor.extent;
  const Placement& placement = placements_[applied.placement];
  return std::ranges::all_of(placement.splits, [&](const Split& split) {
    return split.dim < tensor.extent.ndim() &&
           (split.groups == 0 || scaled_dim(placement, split.dim) != nullptr ||
            tensor.extent[split.dim].size() % split.groups == 0);
  });
}

std::uint32_t Placing::intern(Placement placement) {
  const auto found = std::ranges::find(placements_, placement);
  const auto number = static_cast<std::uint32_t>(found - placements_.begin());
  if (found == placements_.end()) placements_.push_back(std::move(placement));
  return number;
}

std::vector<Scaled> Placing::scaled_of(const TensorRule& rule) const {
  std::vector<Scaled> scaled;
  for (std::size_t dim = 0; dim < rule.blocks.size(); ++dim) {
    const Index block = values_.count(rule.blocks[dim]);
    if (block == 1) continue;
    scaled.push_back(
        {static_cast<int>(dim), block, rule.of.empty() ? Index{0} : values_.count(rule.of[dim])});
  }
  return scaled;
}

Split Placing::split_of(const SplitEntry& entry) const {
  Split split = entry.split;
  if (entry.groups) split.groups = values_.count(*entry.groups);
  if (entry.block) split.block = values_.count(*entry.block);
  for (const Expression& size : entry.sizes) split.sizes.push_back(values_.evaluate(size));
  for (const PartEntry& part : entry.parts) {
    split.parts.push_back({values_.count(part.size),
                           part.groups ? values_.count(*part.groups) : Index{0}, part.beyond});
  }
  return split;
}

void Placing::check_extent(std::uint32_t rule, const Applied& applied,
                           const TensorDesc& tensor) const {
  if (!applied.extent || *applied.extent == tensor.extent) return;
  fail_shape(tensor, fmt::format("in model '{}' it is {} ({}); does config.json belong to another "
                                 "model?",
                                 rules_.name, to_string(*applied.extent),
                                 texts(*rules_.tensors[rule].shape)));
}

void Placing::check_splits(const Placement& placement, const TensorDesc& tensor) const {
  for (const Split& split : placement.splits) {
    if (split.dim >= tensor.extent.ndim()) {
      fail_shape(tensor, fmt::format("model '{}' splits its dim {}, but it has {} dims",
                                     rules_.name, split.dim, tensor.extent.ndim()));
    }
    const Scaled* const scaled = scaled_dim(placement, split.dim);
    const bool of_scales = scaled != nullptr && scaled->of > 0;
    const Index size = of_scales ? scaled->of : tensor.extent[split.dim].size();
    if (split.groups != 0 && size % split.groups != 0) {
      fail_shape(tensor, fmt::format("its dim {} has {} elements, which {} {} do not divide",
                                     split.dim, size, split.groups, split.unit));
    }
  }
}

}  // namespace remesh::detail
