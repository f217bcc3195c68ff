#include "expression.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>

#include <fmt/format.h>

#include "remesh/core/checked.hpp"
#include "remesh/core/error.hpp"

namespace remesh::detail {
namespace {

constexpr std::string_view signs = "+-*/";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Takes the longest run of letters and digits off the front, and the spaces around it.
std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::size_t end = 0;
  while (end < text.size() && (is_letter(text[end]) || is_digit(text[end]))) ++end;
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return word;
}

constexpr char round_up = 'u';

bool is_product(char sign) { return sign == '*' || sign == '/' || sign == round_up; }

// Takes a sign off the front of a text; nothing if none is there.
std::optional<char> take_sign(std::string_view& text) {
  const char sign = text.front();
  if (signs.find(sign) == std::string_view::npos) return std::nullopt;
  const bool twice = sign == '/' && text.starts_with("//");
  text.remove_prefix(twice ? 2 : 1);
  return twice ? round_up : sign;
}

}  // namespace

Expression Expression::parse(std::string_view text) {
  Expression expression;
  expression.text_ = text;
  char sign = '+';
  while (const auto operand = parse_operand(sign, text)) {
    expression.operands_.push_back(*operand);
    if (text.empty()) return expression;
    const auto next = take_sign(text);
    if (!next) break;
    sign = *next;
  }
  throw Error(Errc::invalid_argument,
              fmt::format("'{}' is no size: it must be numbers and names joined by + - * / //",
                          expression.text_));
}

std::optional<Expression::Operand> Expression::parse_operand(char sign, std::string_view& text) {
  Operand operand{.sign = sign, .number = 0, .name = {}};
  const std::string_view word = take_word(text);
  if (word.empty()) return std::nullopt;
  if (!is_digit(word.front())) {
    operand.name = word;
    return operand;
  }
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), operand.number);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return operand;
}

std::vector<std::string> Expression::names() const {
  std::vector<std::string> names;
  for (const Operand& operand : operands_) {
    if (!operand.name.empty()) names.push_back(operand.name);
  }
  return names;
}

Index Expression::apply(char sign, Index left, Index right) const {
  std::optional<Index> result;
  switch (sign) {
    case '+':
      result = checked_add(left, right);
      break;
    case '-':
      result = checked_add(left, -right);
      break;
    case '*':
      result = checked_multiply(left, right);
      break;
    case round_up:
      if (right <= 0 || left < 0) {
        throw Error(Errc::invalid_argument,
                    fmt::format("'{}' is no whole number: {} // {}", text_, left, right));
      }
      result = left / right + (left % right != 0 ? 1 : 0);
      break;
    default:
      if (right == 0 || left % right != 0) {
        throw Error(Errc::invalid_argument,
                    fmt::format("'{}' is no whole number: {} / {}", text_, left, right));
      }
      result = left / right;
  }
  if (!result) throw Error(Errc::invalid_argument, fmt::format("'{}' is too large", text_));
  return *result;
}

Index Expression::evaluate(const std::function<Index(const std::string& name)>& size_of) const {
  Index sum = 0;
  for (std::size_t i = 0; i < operands_.size();) {
    const char sign = operands_[i].sign;
    Index product = 1;
    do {
      const Operand& operand = operands_[i];
      const Index value = operand.name.empty() ? operand.number : size_of(operand.name);
      product = apply(is_product(operand.sign) ? operand.sign : '*', product, value);
      ++i;
    } while (i < operands_.size() && is_product(operands_[i].sign));
    sum = apply(sign, sum, product);
  }
  return sum;
}

}  // namespace remesh::detail
