#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "expression.hpp"
#include "name_table.hpp"
#include "remesh/schema/placement.hpp"

/// @file
/// A model map as it was written, checked, and not yet applied to any model. The schema of the TOML
/// stands in format/models/README.md; the names here are those of its keys.

namespace remesh::detail {

/// An entry of [sizes]: a number, or a key of config.json with a default.
struct SizeRule {
  std::string name;
  std::optional<Index> number;
  std::string key;
  std::optional<Expression> fallback;
};

/// An entry of [flags].
struct FlagRule {
  std::string name;
  std::string key;  ///< empty: config.json has no say
  bool fallback = false;
  std::vector<std::string> always;  ///< model types for which it is true, whatever config.json says
  std::vector<std::string> never;
};

/// True, false, a flag, or the opposite of one.
struct Condition {
  bool constant = true;
  std::string flag;  ///< empty: `constant` counts
  bool negated = false;
};

/// A split whose number of groups is not known yet.
struct SplitEntry {
  Split split;
  std::optional<Expression> groups;
};

/// On which pipeline stages a tensor lies: all of them where there is no pin.
struct StageRule {
  std::optional<PinTo> pin;
  std::string flag;  ///< empty: `pin` counts always
  std::optional<PinTo> otherwise;
};

/// An entry of [[tensor]].
struct TensorRule {
  NamePattern name;
  std::optional<std::vector<Expression>> shape;
  std::vector<SplitEntry> splits;
  StageRule stage;
  Condition needed;
};

struct MapRules {
  std::string name;
  std::vector<std::string> model_types;
  std::optional<Expression> layers;
  std::optional<Expression> experts;  ///< there if some name has {expert}
  std::vector<SizeRule> sizes;
  std::vector<FlagRule> flags;
  std::vector<TensorRule> tensors;  ///< in the order of the state dict
  NameTable names;
};

/// Reads and checks a map. Throws as ModelMap::parse does.
MapRules parse_rules(std::string_view toml, std::string_view where);

}  // namespace remesh::detail
