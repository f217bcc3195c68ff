#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace remesh::detail {

/// A tensor's name as a map writes it, with {layer} where the layer's number stands.
class NamePattern {
 public:
  /// Throws Error(invalid_argument) on an unknown placeholder, one too many, or one beside a digit.
  static NamePattern parse(std::string_view text);

  bool has_layer() const noexcept { return has_layer_; }

  /// What stands on either side of the placeholder; all of it before, where there is none.
  const std::string& before_layer() const noexcept { return before_layer_; }
  const std::string& after_layer() const noexcept { return after_layer_; }

  /// The name of one layer's tensor; `layer` counts only where there is a placeholder.
  std::string name(std::int64_t layer) const;

 private:
  bool has_layer_ = false;
  std::string before_layer_;
  std::string after_layer_;
};

/// Which rule claims a name, and for which layer (-1: none).
struct Claim {
  std::uint32_t rule = 0;
  std::int32_t layer = -1;
};

/// Finds the rule that claims a name. A name is looked up by what is left of it when each run of
/// digits is taken out, then the digits are compared: one hash per name, however many rules.
class NameTable {
 public:
  /// The rule whose names `pattern` would claim too, if there is one; otherwise adds it.
  std::optional<std::uint32_t> add(const NamePattern& pattern, std::uint32_t rule);

  std::optional<Claim> find(std::string_view name) const;

 private:
  // For each run of digits in the name: these digits, or (empty) the number of the layer.
  struct Entry {
    std::vector<std::string> numbers;
    std::uint32_t rule = 0;
  };

  std::unordered_map<std::string, std::vector<Entry>> entries_;
};

}  // namespace remesh::detail
