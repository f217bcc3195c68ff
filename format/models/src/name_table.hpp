#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace remesh::detail {

/// A number that stands in the names of several tensors of a map.
enum class Placeholder : std::uint8_t { layer, expert };

/// A tensor's name as a map writes it, with {layer} and {expert} where those numbers stand.
class NamePattern {
 public:
  /// Throws Error(invalid_argument) on an unknown placeholder, one too many, {expert} without
  /// {layer}, or one beside a digit or another one.
  static NamePattern parse(std::string_view text);

  bool has_layer() const noexcept { return has(Placeholder::layer); }
  bool has_expert() const noexcept { return has(Placeholder::expert); }

  /// What stands before, between and behind the placeholders: one text more than there are.
  const std::vector<std::string>& texts() const noexcept { return texts_; }
  const std::vector<Placeholder>& placeholders() const noexcept { return placeholders_; }

  /// The name of one layer's (and expert's) tensor; a number counts only where it has a place.
  std::string name(std::int64_t layer, std::int64_t expert = -1) const;

 private:
  bool has(Placeholder which) const noexcept;

  std::vector<std::string> texts_{""};
  std::vector<Placeholder> placeholders_;
};

/// Which rule claims a name, and for which layer and expert (-1: none).
struct Claim {
  std::uint32_t rule = 0;
  std::int32_t layer = -1;
  std::int32_t expert = -1;
  bool is_state = false;  ///< what is claimed is an optimizer's state of the rule's tensor
};

/// Finds the rule that claims a name. A name is looked up by what is left of it when each run of
/// digits is taken out, then the digits are compared: one hash per name, however many rules.
class NameTable {
 public:
  /// The rule whose names `pattern` would claim too, if there is one; otherwise adds it.
  std::optional<std::uint32_t> add(const NamePattern& pattern, std::uint32_t rule);

  std::optional<Claim> find(std::string_view name) const;

 private:
  // What a run of digits in the name must be: these digits, or any number of that kind.
  struct Number {
    std::string digits;
    std::optional<Placeholder> any;
  };
  struct Entry {
    std::vector<Number> numbers;
    std::uint32_t rule = 0;
  };
  static bool overlap(const Entry& a, const Entry& b);
  static std::optional<Claim> match(const Entry& entry,
                                    const std::vector<std::string_view>& numbers);

  std::unordered_map<std::string, std::vector<Entry>> entries_;
};

}  // namespace remesh::detail
