#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "remesh/schema/box.hpp"

namespace remesh::detail {

/// What a config.json says at its top level, and, as "outer.inner", in the objects there.
class Config {
 public:
  /// An empty text is a config that says nothing. Throws Error(corrupt) if the text is no JSON
  /// object, is nested deeper than 64, or says a key of the top level twice.
  static Config parse(std::string_view json);

  /// Whether there was a text at all.
  bool present() const noexcept { return present_; }

  /// Whether it says the key, and other than null.
  bool says(std::string_view key) const noexcept { return values_.find(key) != values_.end(); }

  /// The value of a key; nothing where it is absent or null. Throw Error(corrupt), which names the
  /// key and what was found, if it is of another kind. A size is a whole number of `least` or more.
  std::optional<Index> size(std::string_view key, Index least = 1) const;
  std::optional<bool> flag(std::string_view key) const;
  std::optional<std::string> text(std::string_view key) const;

 private:
  // A value that no map can use, as people may be shown it.
  struct Other {
    std::string shown;
  };
  using Value = std::variant<Other, Index, bool, std::string>;

  template <typename T>
  std::optional<T> value(std::string_view key, std::string_view kind) const;

  bool present_ = false;
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace remesh::detail
