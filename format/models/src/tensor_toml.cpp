#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "remesh/core/error.hpp"
#include "remesh/schema/near_miss.hpp"
#include "rules_reader.hpp"

namespace remesh::detail {
namespace {

constexpr std::size_t most_tensors = 4096;

// The axes that may split a tensor. Stages pin it to coordinates of pp instead.
constexpr std::array<std::string_view, 6> split_axes{"tp", "cp", "dp", "etp", "ep", "edp"};

// A word of a map and what it stands for.
template <typename Meaning>
struct Word {
  std::string_view word;
  Meaning meaning;
};

constexpr std::array<Word<std::optional<PinTo>>, 5> stage_words{{{"all", std::nullopt},
                                                                 {"layer", PinTo::layer},
                                                                 {"first", PinTo::first},
                                                                 {"last", PinTo::last},
                                                                 {"ends", PinTo::ends}}};

constexpr std::array<Word<SplitRule>, 2> rule_words{
    {{"balanced", SplitRule::balanced}, {"chunk", SplitRule::chunk}}};

template <typename Meaning, std::size_t N>
Meaning meaning_of(const std::array<Word<Meaning>, N>& words, const TomlFile& file,
                   const toml::node& node, std::string_view what) {
  const std::string text = text_of(file, node, what);
  std::vector<std::string_view> known;
  for (const auto& [word, meaning] : words) {
    if (word == text) return meaning;
    known.push_back(word);
  }
  file.fail(node.source(), fmt::format("'{}' is '{}', but one of {} is expected", what, text,
                                       fmt::join(known, ", ")));
}

std::vector<std::string> axes_of(const TomlTable& split) {
  const toml::node* node = split.find("over");
  if (node == nullptr) return {"tp"};
  std::vector<std::string> axes = split.texts("over");
  for (const std::string& axis : axes) {
    if (std::ranges::find(split_axes, axis) != split_axes.end()) continue;
    split.file().fail(node->source(), fmt::format("'over' names '{}', but one of {} is expected",
                                                  axis, fmt::join(split_axes, ", ")));
  }
  if (axes.empty()) split.file().fail(node->source(), "'over' names no axis");
  return axes;
}

int dim_of(const TomlTable& split) {
  const toml::node& node = split.need("dim");
  const Index dim = number_of(split.file(), node, "dim");
  if (dim < 0 || dim >= max_ndim) {
    split.file().fail(node.source(), fmt::format("'dim' is {}, but one from 0 to {} is expected",
                                                 dim, max_ndim - 1));
  }
  return static_cast<int>(dim);
}

}  // namespace

void RulesReader::read_tensors(const toml::node& node) {
  const toml::array& list = list_of(file_, node, "tensor");
  if (list.empty() || list.size() > most_tensors) {
    file_.fail(node.source(),
               fmt::format("there are {} entries [[tensor]], but from 1 to {} are read",
                           list.size(), most_tensors));
  }
  std::vector<toml::source_position> places;
  for (const toml::node& item : list) {
    TensorRule rule = read_tensor(table_of(file_, item, "tensor"));
    const auto number = static_cast<std::uint32_t>(rules_.tensors.size());
    if (const auto rival = rules_.names.add(rule.name, number)) {
      file_.fail(item.source(), fmt::format("the names are also those of the entry in line {}",
                                            places[*rival].line));
    }
    places.push_back(item.source().begin);
    rules_.tensors.push_back(std::move(rule));
  }
}

TensorRule RulesReader::read_tensor(const toml::table& table) const {
  const TomlTable entry(file_, table, "[[tensor]]",
                        {"name", "shape", "split", "stage", "needed", "layers", "blocks", "of"});
  const toml::node& name = entry.need("name");
  const std::string pattern = text_of(file_, name, "name");
  TensorRule rule{};
  rule.name = file_.at(name, [&] { return NamePattern::parse(pattern); });
  if (rule.name.has_expert() && !rules_.experts) {
    file_.fail(name.source(), "the name has {expert}, but [model] says no 'experts'");
  }
  if (const auto* shape = entry.find("shape")) rule.shape = read_shape(*shape);
  if (const auto* splits = entry.find("split")) rule.splits = read_splits(*splits);
  if (rule.name.has_layer()) rule.stage.pin = PinTo::layer;
  if (const auto* stage = entry.find("stage")) rule.stage = read_stage(*stage);
  if (const auto* needed = entry.find("needed")) rule.needed = read_all_needed(*needed);
  if (const auto* layers = entry.find("layers")) {
    if (!rule.name.has_layer()) {
      file_.fail(layers->source(), "there are 'layers', but the name has no {layer}");
    }
    const toml::array& range = list_of(file_, *layers, "layers");
    if (range.size() != 2) {
      file_.fail(layers->source(), "'layers' is not the first and the one behind the last");
    }
    rule.layers.emplace(expression(range[0], "layers"), expression(range[1], "layers"));
  }
  read_blocks(entry, rule);
  check_tensor(rule, table);
  return rule;
}

void RulesReader::read_blocks(const TomlTable& entry, TensorRule& rule) const {
  const toml::node* const blocks = entry.find("blocks");
  const toml::node* const of = entry.find("of");
  if (of != nullptr && blocks == nullptr) {
    file_.fail(of->source(), "there is 'of', but no 'blocks' that have a scale each");
  }
  if (blocks == nullptr) return;
  rule.blocks = read_shape(*blocks);
  if (of != nullptr) rule.of = read_shape(*of);
  const std::size_t dims = rule.shape ? rule.shape->size() : rule.blocks.size();
  if (rule.blocks.size() != dims || (of != nullptr && rule.of.size() != dims)) {
    file_.fail(blocks->source(),
               fmt::format("'blocks' and 'of' have one number for each of {} dims", dims));
  }
}

void RulesReader::check_tensor(const TensorRule& rule, const toml::table& table) const {
  const bool pins_layer = rule.stage.pin == PinTo::layer || rule.stage.otherwise == PinTo::layer;
  if (pins_layer && !rule.name.has_layer()) {
    file_.fail(table.get("stage")->source(), "'stage' is 'layer', but the name has no {layer}");
  }
  std::set<std::string> split_over;
  for (const SplitEntry& entry : rule.splits) {
    const auto dim = static_cast<std::size_t>(entry.split.dim);
    if (rule.shape && dim >= rule.shape->size()) {
      file_.fail(table.get("split")->source(),
                 fmt::format("'dim' is {}, but the shape has {} dims", dim, rule.shape->size()));
    }
    for (const std::string& axis : entry.split.over) {
      if (split_over.insert(axis).second) continue;
      file_.fail(table.get("split")->source(),
                 fmt::format("the tensor is split over {} twice", axis));
    }
  }
}

std::vector<Expression> RulesReader::read_shape(const toml::node& node) const {
  std::vector<Expression> shape;
  for (const toml::node& dim : list_of(file_, node, "shape")) {
    shape.push_back(expression(dim, "shape"));
  }
  if (shape.size() > static_cast<std::size_t>(max_ndim)) {
    file_.fail(node.source(), fmt::format("'shape' has {} dims, but at most {} are possible",
                                          shape.size(), max_ndim));
  }
  return shape;
}

std::vector<SplitEntry> RulesReader::read_splits(const toml::node& node) const {
  if (node.is_table()) return {read_split(*node.as_table())};
  std::vector<SplitEntry> splits;
  for (const toml::node& item : list_of(file_, node, "split")) {
    splits.push_back(read_split(table_of(file_, item, "split")));
  }
  return splits;
}

SplitEntry RulesReader::read_split(const toml::table& table) const {
  const TomlTable entry(
      file_, table, "'split'",
      {"dim", "over", "groups", "share", "divide", "unit", "rule", "block", "parts", "sizes"});
  SplitEntry read{};
  read.split.dim = dim_of(entry);
  read.split.over = axes_of(entry);
  if (const auto* rule = entry.find("rule")) {
    read.split.rule = meaning_of(rule_words, file_, *rule, "rule");
  }
  if (const auto* groups = entry.find("groups")) read.groups = expression(*groups, "groups");
  read.split.beyond = read_beyond(entry, read.groups.has_value());
  read.split.unit = entry.text("unit", read.groups ? "groups" : "");
  if (const auto* block = entry.find("block")) read.block = expression(*block, "block");
  if (const auto* parts = entry.find("parts")) read.parts = read_parts(*parts);
  if (const auto* sizes = entry.find("sizes")) {
    for (const toml::node& size : list_of(file_, *sizes, "sizes")) {
      read.sizes.push_back(expression(size, "sizes"));
    }
    read.split.rule = SplitRule::sizes;
  }
  check_split(read, entry);
  return read;
}

// What excludes each other, and what goes together.
void RulesReader::check_split(const SplitEntry& read, const TomlTable& entry) const {
  const auto fail = [&](std::string_view why) { file_.fail(entry.table().source(), why); };
  const bool has_sizes = !read.sizes.empty();
  if (has_sizes && (read.groups || read.block || entry.find("rule") != nullptr)) {
    fail("'sizes' leave nothing to 'groups', 'block' and 'rule'");
  }
  if (read.groups && !read.parts.empty()) {
    fail("'groups' and 'parts' exclude each other: parts have their own");
  }
  const bool dealt_evenly = read.groups && read.split.beyond != Beyond::divide;
  if (dealt_evenly && read.split.rule != SplitRule::balanced) {
    fail("'groups' are always dealt evenly, but 'rule' asks for something else");
  }
}

Beyond RulesReader::read_beyond(const TomlTable& entry, bool has_groups) const {
  const bool share = entry.flag("share", false);
  const bool divide = entry.flag("divide", false);
  if (share && !has_groups) {
    file_.fail(entry.table().source(), "'share' is true, but there are no 'groups' to share");
  }
  if (divide && !has_groups) {
    file_.fail(entry.table().source(), "'divide' is true, but there are no 'groups' to divide");
  }
  if (share && divide) {
    file_.fail(entry.table().source(), "'share' and 'divide' exclude each other");
  }
  return share ? Beyond::share : divide ? Beyond::divide : Beyond::refuse;
}

std::vector<PartEntry> RulesReader::read_parts(const toml::node& node) const {
  constexpr std::size_t most_parts = 64;
  const toml::array& list = list_of(file_, node, "parts");
  if (list.size() < 2 || list.size() > most_parts) {
    file_.fail(node.source(), fmt::format("there are {} 'parts', but from 2 to {} are possible",
                                          list.size(), most_parts));
  }
  std::vector<PartEntry> parts;
  for (const toml::node& item : list) {
    const TomlTable entry(file_, table_of(file_, item, "parts"), "a part",
                          {"size", "groups", "share", "divide"});
    PartEntry part{expression(entry.need("size"), "size"), {}, Beyond::refuse};
    if (const auto* groups = entry.find("groups")) part.groups = expression(*groups, "groups");
    part.beyond = read_beyond(entry, part.groups.has_value());
    parts.push_back(std::move(part));
  }
  return parts;
}

StageRule RulesReader::read_stage(const toml::node& node) const {
  if (!node.is_table()) return {meaning_of(stage_words, file_, node, "stage"), {}, std::nullopt};
  const toml::table& table = *node.as_table();
  const toml::node* otherwise = table.get("otherwise");
  if (otherwise == nullptr || table.size() != 2) {
    file_.fail(node.source(), "'stage' must be a text, or have a flag and 'otherwise'");
  }
  StageRule rule{};
  rule.otherwise = meaning_of(stage_words, file_, *otherwise, "otherwise");
  for (const auto& [key, stage] : table) {
    if (key == "otherwise") continue;
    rule.flag = flag(stage, key.str());
    rule.pin = meaning_of(stage_words, file_, stage, key.str());
  }
  return rule;
}

std::vector<Condition> RulesReader::read_all_needed(const toml::node& node) const {
  if (!node.is_array()) return {read_needed(node)};
  std::vector<Condition> all;
  for (const toml::node& one : *node.as_array()) all.push_back(read_needed(one));
  return all;
}

Condition RulesReader::read_needed(const toml::node& node) const {
  if (node.is_boolean()) return {flag_of(file_, node, "needed"), {}, false};
  const std::string text = text_of(file_, node, "needed");
  const bool negated = text.starts_with('!');
  return {true, flag(node, std::string_view(text).substr(negated ? 1 : 0)), negated};
}

}  // namespace remesh::detail
