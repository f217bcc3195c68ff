#include "natural_order.hpp"

#include <algorithm>
#include <cstddef>

namespace remesh::detail {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Takes a run of digits away from the begin of a name, and returns it without leading zeros.
std::string_view take_number(std::string_view& name) {
  const auto end = std::ranges::find_if_not(name, is_digit) - name.begin();
  std::string_view number = name.substr(0, static_cast<std::size_t>(end));
  name.remove_prefix(number.size());
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return number;
}

}  // namespace

bool comes_before(std::string_view a, std::string_view b) noexcept {
  const std::string_view whole_a = a;
  const std::string_view whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const std::string_view x = take_number(a);
      const std::string_view y = take_number(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      continue;
    }
    if (a.front() != b.front()) return a.front() < b.front();
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  return a.empty() != b.empty() ? a.empty() : whole_a < whole_b;
}

}  // namespace remesh::detail
