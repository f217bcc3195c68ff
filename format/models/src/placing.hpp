#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "remesh/schema/layout.hpp"
#include "remesh/schema/tensor.hpp"
#include "rules.hpp"
#include "values.hpp"

namespace remesh::detail {

/// Turns rules into placements for one model, as tensors ask for them. Refers to its arguments.
class Placing {
 public:
  Placing(const MapRules& rules, const Values& values)
      : rules_(rules), values_(values), applied_(rules.tensors.size()) {}

  /// The number of the tensor's placement. An optimizer's state lies as its parameter does if it
  /// has the same shape; otherwise whole, on the ranks that have some of the parameter's layer.
  /// Throws Error(corrupt, RM303) if a parameter's shape is not what the rule says, or is none that
  /// the rule can split.
  std::uint32_t place(const Claim& claim, const TensorDesc& tensor);

  /// Those that were asked for, each once.
  const std::vector<Placement>& placements() const noexcept { return placements_; }

 private:
  // A rule with this model's sizes.
  struct Applied {
    std::optional<Box> extent;
    std::uint32_t placement = 0;
  };

  const Applied& apply(std::uint32_t rule);
  std::uint32_t intern(Placement placement);
  bool lies_like(const Applied& applied, const TensorDesc& tensor) const;
  Split split_of(const SplitEntry& entry) const;
  std::vector<Scaled> scaled_of(const TensorRule& rule) const;
  void check_extent(std::uint32_t rule, const Applied& applied, const TensorDesc& tensor) const;
  void check_splits(const Placement& placement, const TensorDesc& tensor) const;

  const MapRules& rules_;
  const Values& values_;
  std::vector<std::optional<Applied>> applied_;
  std::vector<Placement> placements_;
};

}  // namespace remesh::detail
