#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/error.hpp"
#include "remesh/schema/near_miss.hpp"
#include "rules_reader.hpp"

namespace remesh::detail {
namespace {

constexpr std::size_t most_sizes = 256;

template <typename Rule>
std::vector<std::string_view> names_of(const std::vector<Rule>& rules) {
  std::vector<std::string_view> names;
  names.reserve(rules.size());
  for (const Rule& rule : rules) names.push_back(rule.name);
  return names;
}

}  // namespace

MapRules parse_rules(std::string_view toml, std::string_view where) {
  const TomlFile file(toml, where);
  return RulesReader(file).read();
}

MapRules RulesReader::read() && {
  const TomlTable root(file_, file_.root(), "a model map", {"model", "sizes", "flags", "tensor"});
  if (const auto* sizes = root.find("sizes")) read_sizes(table_of(file_, *sizes, "sizes"));
  if (const auto* flags = root.find("flags")) read_flags(table_of(file_, *flags, "flags"));
  if (const auto* sizes = root.find("sizes")) check_size_flags(*sizes);
  read_model(root.need("model"));
  read_tensors(root.need("tensor"));
  return std::move(rules_);
}

void RulesReader::read_model(const toml::node& node) {
  const TomlTable model(file_, table_of(file_, node, "model"), "[model]",
                        {"name", "model_types", "layers", "experts", "active_experts"});
  rules_.name = text_of(file_, model.need("name"), "name");
  rules_.model_types = model.texts("model_types");
  if (const auto* layers = model.find("layers")) rules_.layers = expression(*layers, "layers");
  if (const auto* experts = model.find("experts")) rules_.experts = expression(*experts, "experts");
  if (const auto* active = model.find("active_experts")) {
    rules_.active_experts = expression(*active, "active_experts");
  }
}

void RulesReader::read_sizes(const toml::table& table) {
  if (table.size() > most_sizes) {
    file_.fail(table.source(), fmt::format("[sizes] has {} entries, but at most {} are read",
                                           table.size(), most_sizes));
  }
  for (const auto& [key, node] : table) {
    rules_.sizes.emplace_back();
    rules_.sizes.back().name = key.str();
  }
  for (SizeRule& rule : rules_.sizes) rule = read_size(rule.name, *table.get(rule.name));
  refuse_circles(table);
}

SizeRule RulesReader::read_size(std::string_view name, const toml::node& node) const {
  SizeRule rule;
  rule.name = name;
  if (node.is_table()) return read_size_table(std::move(rule), *node.as_table());
  if (!node.is_integer()) {
    rule.key = text_of(file_, node, name);
    return rule;
  }
  rule.number = number_of(file_, node, name);
  if (*rule.number < 1) {
    file_.fail(node.source(),
               fmt::format("'{}' is {}, but a size is positive", name, *rule.number));
  }
  return rule;
}

SizeRule RulesReader::read_size_table(SizeRule rule, const toml::table& table) const {
  const TomlTable size(file_, table, fmt::format("the size '{}'", rule.name),
                       {"key", "default", "zero", "flag", "then", "otherwise"});
  if (const auto* by_flag = size.find("flag")) {
    if (size.find("key") || size.find("default") || size.find("zero")) {
      file_.fail(table.source(), "'flag' goes with 'then' and 'otherwise' alone");
    }
    rule.flag = text_of(file_, *by_flag, "flag");
    rule.then = expression(size.need("then"), "then");
    rule.fallback = expression(size.need("otherwise"), "otherwise");
    return rule;
  }
  rule.least = size.flag("zero", false) ? 0 : 1;
  if (const auto* fallback = size.find("default")) {
    // A number may be 0 where the size may.
    const bool is_zero = rule.least == 0 && fallback->value<Index>() == 0;
    rule.fallback = is_zero ? Expression::parse("0") : expression(*fallback, "default");
  }
  if (size.find("key") || !rule.fallback) rule.key = text_of(file_, size.need("key"), "key");
  return rule;
}

// A default may speak of a size whose default speaks of another, but not of itself in the end.
void RulesReader::refuse_circles(const toml::table& table) const {
  std::set<std::string> ends;
  for (std::size_t before = rules_.sizes.size() + 1; before != ends.size();) {
    before = ends.size();
    for (const SizeRule& rule : rules_.sizes) {
      auto names = rule.fallback ? rule.fallback->names() : std::vector<std::string>();
      if (rule.then) std::ranges::copy(rule.then->names(), std::back_inserter(names));
      if (std::ranges::all_of(names, [&](const auto& name) { return ends.contains(name); })) {
        ends.insert(rule.name);
      }
    }
  }
  for (const SizeRule& rule : rules_.sizes) {
    if (ends.contains(rule.name)) continue;
    file_.fail(table.get(rule.name)->source(),
               fmt::format("the default of '{}' comes back to itself", rule.name));
  }
}

void RulesReader::read_flags(const toml::table& table) {
  for (const auto& [key, node] : table) rules_.flags.push_back(read_flag(key.str(), node));
}

void RulesReader::check_size_flags(const toml::node& sizes) const {
  for (const SizeRule& rule : rules_.sizes) {
    if (!rule.flag.empty()) flag(*sizes.as_table()->get(rule.name), rule.flag);
  }
}

FlagRule RulesReader::read_flag(std::string_view name, const toml::node& node) const {
  if (node.is_string()) return {std::string(name), text_of(file_, node, name), false, {}, {}, {}};
  const TomlTable flag(file_, table_of(file_, node, name), fmt::format("the flag '{}'", name),
                       {"key", "default", "always", "never", "present"});
  if (flag.find("present") != nullptr && (flag.find("key") || flag.find("default"))) {
    file_.fail(node.source(),
               fmt::format("the flag '{}' has 'present' and a key or default", name));
  }
  return {std::string(name),    flag.text("key", ""), flag.flag("default", false),
          flag.texts("always"), flag.texts("never"),  flag.text("present", "")};
}

Expression RulesReader::expression(const toml::node& node, std::string_view what) const {
  const std::string text =
      node.is_integer() ? std::to_string(number_of(file_, node, what)) : text_of(file_, node, what);
  Expression parsed = file_.at(node, [&] { return Expression::parse(text); });
  const std::vector<std::string_view> known = names_of(rules_.sizes);
  for (const std::string& name : parsed.names()) {
    if (std::ranges::find(known, name) != known.end()) continue;
    file_.fail(node.source(), fmt::format("'{}' speaks of '{}', which is not among [sizes]{}", text,
                                          name, did_you_mean(name, known)));
  }
  return parsed;
}

std::string RulesReader::flag(const toml::node& node, std::string_view name) const {
  const std::vector<std::string_view> known = names_of(rules_.flags);
  if (std::ranges::find(known, name) == known.end()) {
    file_.fail(node.source(),
               fmt::format("'{}' is not among [flags]{}", name, did_you_mean(name, known)));
  }
  return std::string(name);
}

}  // namespace remesh::detail
