#pragma once

#include <string_view>

#include "rules.hpp"
#include "toml_table.hpp"

namespace remesh::detail {

/// Turns the TOML of a map into rules, in the order of the functions. Refers to its argument.
class RulesReader {
 public:
  explicit RulesReader(const TomlFile& file) : file_(file) {}

  MapRules read() &&;

 private:
  // rules_toml.cpp: what the model is.
  void read_sizes(const toml::table& table);
  SizeRule read_size(std::string_view name, const toml::node& node) const;
  SizeRule read_size_table(SizeRule rule, const toml::table& table) const;
  void refuse_circles(const toml::table& table) const;
  void read_flags(const toml::table& table);
  void check_size_flags(const toml::node& sizes) const;
  FlagRule read_flag(std::string_view name, const toml::node& node) const;
  void read_model(const toml::node& node);

  // tensor_toml.cpp: what its tensors are.
  void read_tensors(const toml::node& node);
  TensorRule read_tensor(const toml::table& table) const;
  void read_blocks(const TomlTable& entry, TensorRule& rule) const;
  std::vector<Expression> read_shape(const toml::node& node) const;
  std::vector<SplitEntry> read_splits(const toml::node& node) const;
  SplitEntry read_split(const toml::table& table) const;
  void check_split(const SplitEntry& read, const TomlTable& entry) const;
  Beyond read_beyond(const TomlTable& entry, bool has_groups) const;
  std::vector<PartEntry> read_parts(const toml::node& node) const;
  StageRule read_stage(const toml::node& node) const;
  std::vector<Condition> read_all_needed(const toml::node& node) const;
  Condition read_needed(const toml::node& node) const;
  void check_tensor(const TensorRule& rule, const toml::table& table) const;

  // An expression that speaks of known sizes only; a positive number counts as one.
  Expression expression(const toml::node& node, std::string_view what) const;
  // The name of a known flag.
  std::string flag(const toml::node& node, std::string_view name) const;

  const TomlFile& file_;
  MapRules rules_;
};

}  // namespace remesh::detail
