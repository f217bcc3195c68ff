#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config.hpp"
#include "rules.hpp"

namespace remesh::detail {

/// A map's sizes and flags for one model. Looked up when asked for, so that a config.json need say
/// only what its model uses. Refers to both arguments, which must outlive it.
class Values {
 public:
  Values(const MapRules& rules, const Config& config) : rules_(rules), config_(config) {}

  /// Throws Error(incomplete), which names the key, if config.json does not say it, and
  /// Error(corrupt) if what it says makes no size.
  Index evaluate(const Expression& expression) const;

  /// The same, of things that there must be at least one of.
  Index count(const Expression& expression) const;

  bool holds(const Condition& condition) const;
  bool holds(const std::vector<Condition>& all) const;

  /// Which of `layers` layers have a tensor. Throws Error(corrupt) if the map's range is none.
  Range layers(const TensorRule& rule, Index layers) const;
  bool flag(const std::string& name) const;

  /// The stage of a tensor in this model.
  std::optional<PinTo> pin(const StageRule& stage) const;

  std::vector<Index> shape(const std::vector<Expression>& dims) const;

 private:
  Index size(const std::string& name) const;
  Index new_size(const std::string& name) const;
  [[noreturn]] void fail_missing(const std::string& key) const;
  [[noreturn]] void fail_value(const Expression& expression, Index value,
                               std::string_view expected) const;

  const MapRules& rules_;
  const Config& config_;
  // Defaults may speak of one another, each of several: every size is worked out once.
  mutable std::map<std::string, Index> sizes_;
};

}  // namespace remesh::detail
