#include "toml_table.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "remesh/schema/near_miss.hpp"

namespace remesh::detail {
namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 20;

std::string_view kind_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::string:
      return "a text";
    case toml::node_type::integer:
      return "a whole number";
    case toml::node_type::floating_point:
      return "a fraction";
    case toml::node_type::boolean:
      return "true or false";
    default:
      return "a date or time";
  }
}

[[noreturn]] void fail_kind(const TomlFile& file, const toml::node& node, std::string_view what,
                            std::string_view expected) {
  file.fail(node.source(),
            fmt::format("{} is {}, but {} is expected", what, kind_of(node), expected));
}

}  // namespace

TomlFile::TomlFile(std::string_view text, std::string_view where, std::string_view kind)
    : where_(where), kind_(kind) {
  if (text.size() > most_bytes) {
    throw Error(Errc::invalid_argument,
                fmt::format("cannot read {} {}: it has {} bytes, but at most {} are read", kind_,
                            where_, text.size(), most_bytes));
  }
  try {
    root_ = toml::parse(text);
  } catch (const toml::parse_error& error) {
    fail(error.source(), error.description());
  }
}

void TomlFile::fail(const toml::source_region& at, std::string_view why) const {
  throw Error(Errc::invalid_argument,
              fmt::format("cannot read {} {}: line {}, column {}: {}", kind_, where_, at.begin.line,
                          at.begin.column, why));
}

TomlTable::TomlTable(const TomlFile& file, const toml::table& table, std::string_view title,
                     std::initializer_list<std::string_view> keys)
    : file_(file), table_(table), title_(title) {
  const toml::key* first = nullptr;  // in the file's order, which is not the table's
  for (const auto& [key, node] : table_) {
    if (std::ranges::find(keys, key.str()) != keys.end()) continue;
    if (first == nullptr || key.source().begin < first->source().begin) first = &key;
  }
  if (first == nullptr) return;
  file.fail(first->source(), fmt::format("unknown key '{}' in {}{}", first->str(), title_,
                                         did_you_mean(first->str(), keys)));
}

const toml::node& TomlTable::need(std::string_view key) const {
  if (const toml::node* node = find(key)) return *node;
  file_.fail(table_.source(), fmt::format("{} has no '{}'", title_, key));
}

std::string TomlTable::text(std::string_view key, std::string_view otherwise) const {
  const toml::node* node = find(key);
  return node != nullptr ? text_of(file_, *node, key) : std::string(otherwise);
}

bool TomlTable::flag(std::string_view key, bool otherwise) const {
  const toml::node* node = find(key);
  return node != nullptr ? flag_of(file_, *node, key) : otherwise;
}

std::vector<std::string> TomlTable::texts(std::string_view key) const {
  const toml::node* node = find(key);
  return node != nullptr ? texts_of(file_, *node, key) : std::vector<std::string>();
}

std::string text_of(const TomlFile& file, const toml::node& node, std::string_view what) {
  if (const auto* text = node.as_string()) return text->get();
  fail_kind(file, node, fmt::format("'{}'", what), "a text");
}

Index number_of(const TomlFile& file, const toml::node& node, std::string_view what) {
  if (const auto* number = node.as_integer()) return number->get();
  fail_kind(file, node, fmt::format("'{}'", what), "a whole number");
}

bool flag_of(const TomlFile& file, const toml::node& node, std::string_view what) {
  if (const auto* flag = node.as_boolean()) return flag->get();
  fail_kind(file, node, fmt::format("'{}'", what), "true or false");
}

const toml::table& table_of(const TomlFile& file, const toml::node& node, std::string_view what) {
  if (const auto* table = node.as_table()) return *table;
  fail_kind(file, node, fmt::format("'{}'", what), "a table");
}

const toml::array& list_of(const TomlFile& file, const toml::node& node, std::string_view what) {
  if (const auto* list = node.as_array()) return *list;
  fail_kind(file, node, fmt::format("'{}'", what), "a list");
}

std::vector<std::string> texts_of(const TomlFile& file, const toml::node& node,
                                  std::string_view what) {
  std::vector<std::string> texts;
  for (const toml::node& item : list_of(file, node, what))
    texts.push_back(text_of(file, item, what));
  return texts;
}

}  // namespace remesh::detail
