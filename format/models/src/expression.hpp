#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/schema/box.hpp"

namespace remesh::detail {

/// A size, as a map writes it: whole numbers and names of sizes, joined by + - * / and //, which
/// rounds up, with the usual precedence and without parentheses: "heads * head_dim", "head_dim /
/// 2", "width // 128".
class Expression {
 public:
  /// Throws Error(invalid_argument), which quotes the text, if it is none.
  static Expression parse(std::string_view text);

  const std::string& text() const noexcept { return text_; }

  /// The sizes it speaks of.
  std::vector<std::string> names() const;

  /// Its value, when `size_of` gives the value of a name.
  /// Throws Error(invalid_argument) if a division leaves a remainder, or on an overflow.
  Index evaluate(const std::function<Index(const std::string& name)>& size_of) const;

 private:
  // A number or, where `name` is not empty, a size; and the sign before it, of which `//` is 'u'.
  struct Operand {
    char sign = '+';
    Index number = 0;
    std::string name;
  };

  // Takes one off the front of a text; nothing if none is there.
  static std::optional<Operand> parse_operand(char sign, std::string_view& text);

  Index apply(char sign, Index left, Index right) const;

  std::string text_;
  std::vector<Operand> operands_;
};

}  // namespace remesh::detail
