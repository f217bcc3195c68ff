#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <toml++/toml.h>

#include "remesh/core/error.hpp"
#include "remesh/schema/box.hpp"

namespace remesh::detail {

/// A TOML file that is being read, for errors.
class TomlFile {
 public:
  /// Throws Error(invalid_argument) with line and column if the text is no TOML. `kind`: what the
  /// file is, for errors.
  TomlFile(std::string_view text, std::string_view where, std::string_view kind = "model map");

  const toml::table& root() const noexcept { return root_; }

  /// Throws Error(invalid_argument): "cannot read model map X: line 3, column 5: <why>".
  [[noreturn]] void fail(const toml::source_region& at, std::string_view why) const;

  /// Calls `parse`; its Error(invalid_argument) is thrown again, with the place.
  template <typename Parse>
  auto at(const toml::node& node, const Parse& parse) const {
    try {
      return parse();
    } catch (const Error& error) {
      fail(node.source(), error.what());
    }
  }

 private:
  std::string where_;
  std::string kind_;
  toml::table root_;
};

/// One table of it, of which every key must be known. Refers to its arguments.
class TomlTable {
 public:
  /// `title` names it in errors: "[model]". Throws Error(invalid_argument) at the first key that is
  /// not among `keys`, with the one that was meant where one is near.
  TomlTable(const TomlFile& file, const toml::table& table, std::string_view title,
            std::initializer_list<std::string_view> keys);

  const TomlFile& file() const noexcept { return file_; }
  const toml::table& table() const noexcept { return table_; }

  /// Nothing where there is no such key.
  const toml::node* find(std::string_view key) const { return table_.get(key); }
  /// Throws Error(invalid_argument) where there is none.
  const toml::node& need(std::string_view key) const;

  /// The values of keys; the second argument where there is no such key. Throw
  /// Error(invalid_argument) if it is of another kind.
  std::string text(std::string_view key, std::string_view otherwise) const;
  bool flag(std::string_view key, bool otherwise) const;
  std::vector<std::string> texts(std::string_view key) const;

 private:
  const TomlFile& file_;
  const toml::table& table_;
  std::string title_;
};

/// A node that must be of a kind. Each throws Error(invalid_argument), which names `what`, if not.
std::string text_of(const TomlFile& file, const toml::node& node, std::string_view what);
Index number_of(const TomlFile& file, const toml::node& node, std::string_view what);
bool flag_of(const TomlFile& file, const toml::node& node, std::string_view what);
const toml::table& table_of(const TomlFile& file, const toml::node& node, std::string_view what);
const toml::array& list_of(const TomlFile& file, const toml::node& node, std::string_view what);
std::vector<std::string> texts_of(const TomlFile& file, const toml::node& node,
                                  std::string_view what);

}  // namespace remesh::detail
