#include "project_file.hpp"

#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include "remesh/core/error.hpp"
#include "remesh/schema/near_miss.hpp"

namespace remesh {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view where) : where_(where) {}

  ProjectFile read(std::string_view text) const {
    const toml::table root = parsed(text);
    check_keys(root, "remesh.toml", {"fail_on", "level", "ignore"});
    ProjectFile file;
    file.fail_on = choice(root, "fail_on", {"error", "warn"});
    file.level = choice(root, "level", {"header", "quick", "full", "deep"});
    if (const auto* node = root.get("ignore")) file.ignores = rules(*node);
    return file;
  }

 private:
  [[noreturn]] void fail(const toml::source_region& at, std::string_view why) const {
    throw Error(Errc::invalid_argument, fmt::format("cannot read {}: line {}, column {}: {}",
                                                    where_, at.begin.line, at.begin.column, why));
  }

  toml::table parsed(std::string_view text) const {
    try {
      return toml::parse(text);
    } catch (const toml::parse_error& error) {
      fail(error.source(), error.description());
    }
  }

  // Tells of the first, in the file's order, which is not the table's.
  void check_keys(const toml::table& table, std::string_view title,
                  std::initializer_list<std::string_view> known) const {
    const toml::key* first = nullptr;
    for (const auto& [key, node] : table) {
      if (std::ranges::find(known, key.str()) != known.end()) continue;
      if (first == nullptr || key.source().begin < first->source().begin) first = &key;
    }
    if (first == nullptr) return;
    fail(first->source(), fmt::format("unknown key '{}' in {}{}", first->str(), title,
                                      did_you_mean(first->str(), known)));
  }

  std::string text_of(const toml::node& node, std::string_view key) const {
    const auto* text = node.as_string();
    if (text == nullptr) fail(node.source(), fmt::format("'{}' is no text", key));
    if (text->get().empty()) fail(node.source(), fmt::format("'{}' is empty", key));
    return text->get();
  }

  std::string choice(const toml::table& table, std::string_view key,
                     std::initializer_list<std::string_view> known) const {
    const auto* node = table.get(key);
    if (node == nullptr) return {};
    std::string text = text_of(*node, key);
    if (std::ranges::find(known, text) == known.end()) {
      fail(node->source(), fmt::format("'{}' is '{}', but one of {} is expected", key, text,
                                       fmt::join(known, ", ")));
    }
    return text;
  }

  std::vector<IgnoreRule> rules(const toml::node& node) const {
    const auto* list = node.as_array();
    if (list == nullptr) fail(node.source(), "'ignore' is no list; write [[ignore]] above each");
    std::vector<IgnoreRule> all;
    all.reserve(list->size());
    for (const toml::node& item : *list) {
      if (!item.is_table()) fail(item.source(), "an entry of 'ignore' is no table");
      all.push_back(rule(*item.as_table()));
    }
    return all;
  }

  IgnoreRule rule(const toml::table& table) const {
    check_keys(table, "[[ignore]]", {"id", "glob", "reason", "expires"});
    IgnoreRule rule;
    const std::string said = text_of(need(table, "id"), "id");
    try {
      rule.id = checked_id(said);
    } catch (const Error& error) {
      fail(table.get("id")->source(), error.what());
    }
    if (const auto* glob = table.get("glob")) rule.glob = text_of(*glob, "glob");
    rule.reason = text_of(need(table, "reason"), "reason");
    rule.expires = day(need(table, "expires"));
    rule.origin = fmt::format("{} line {}", where_, table.source().begin.line);
    return rule;
  }

  const toml::node& need(const toml::table& table, std::string_view key) const {
    if (const toml::node* node = table.get(key)) return *node;
    fail(table.source(), fmt::format("[[ignore]] has no '{}'", key));
  }

  Day day(const toml::node& node) const {
    const auto* date = node.as_date();
    if (date == nullptr) {
      fail(node.source(), "'expires' is no date; write it without quotes, as in 2027-03-31");
    }
    const toml::date& value = date->get();
    return {std::chrono::year(value.year), std::chrono::month(value.month),
            std::chrono::day(value.day)};
  }

  std::string_view where_;
};

}  // namespace

ProjectFile parse_project_file(std::string_view toml, std::string_view where) {
  return Parser(where).read(toml);
}

}  // namespace remesh
