#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "expression.hpp"
#include "name_table.hpp"
#include "remesh/schema/placement.hpp"

/// @file
/// A model map as it was written, checked, and not yet applied to any model. The schema of the TOML
/// stands in format/models/README.md; the names here are those of its keys.

namespace remesh::detail {

/// An entry of [sizes]: a number, or a key of config.json with a default, or by a flag.
struct SizeRule {
  std::string name;
  std::optional<Index> number;
  std::string key;                     ///< empty: the default always
  std::optional<Expression> fallback;  ///< also what it is without the flag
  Index least = 1;                     ///< 0 where it may be none
  std::string flag;                    ///< not empty: `then` where it is true
  std::optional<Expression> then;
};

/// An entry of [flags].
struct FlagRule {
  std::string name;
  std::string key;  ///< empty: config.json has no say
  bool fallback = false;
  std::vector<std::string> always;  ///< model types for which it is true, whatever config.json says
  std::vector<std::string> never;
  std::string present;  ///< not empty: true where config.json says this key
};

/// True, false, a flag, or the opposite of one.
struct Condition {
  bool constant = true;
  std::string flag;  ///< empty: `constant` counts
  bool negated = false;
};

/// A part of a split dim whose sizes are not known yet.
struct PartEntry {
  Expression size;
  std::optional<Expression> groups;
  Beyond beyond = Beyond::refuse;
};

/// A split whose numbers are not known yet.
struct SplitEntry {
  Split split;
  std::optional<Expression> groups;
  std::optional<Expression> block;
  std::vector<PartEntry> parts;
  std::vector<Expression> sizes;
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
  std::vector<Expression> blocks;  ///< for each dim, 1 where it is in none; empty: in none at all
  std::vector<Expression> of;      ///< of scales: the weight's shape
  StageRule stage;
  std::vector<Condition> needed;  ///< all of them must hold
  /// Which layers have it, as a half-open range; left out: all.
  std::optional<std::pair<Expression, Expression>> layers;
};

struct MapRules {
  std::string name;
  std::vector<std::string> model_types;
  std::optional<Expression> layers;
  std::optional<Expression> experts;         ///< there if some name has {expert}
  std::optional<Expression> active_experts;  ///< how many of them a token sees; left out: all
  std::vector<SizeRule> sizes;
  std::vector<FlagRule> flags;
  std::vector<TensorRule> tensors;  ///< in the order of the state dict
  NameTable names;
};

/// Reads and checks a map. Throws as ModelMap::parse does.
MapRules parse_rules(std::string_view toml, std::string_view where);

}  // namespace remesh::detail
