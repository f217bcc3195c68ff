#include "name_table.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/error.hpp"

namespace remesh::detail {
namespace {

constexpr char number_mark = '#';

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A name, and the runs of digits that were taken out of it, each of which leaves a mark.
struct Dissected {
  std::string rest;
  std::vector<std::string_view> numbers;
};

void dissect(std::string_view name, Dissected& into) {
  for (std::size_t at = 0; at < name.size();) {
    std::size_t end = at;
    while (end < name.size() && is_digit(name[end])) ++end;
    if (end > at) {
      into.numbers.push_back(name.substr(at, end - at));
      into.rest += number_mark;
    } else {
      into.rest += name[at];
      ++end;
    }
    at = end;
  }
}

// A number as frameworks write it: decimal, without leading zeros.
std::optional<std::int32_t> number_of(std::string_view digits) {
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

[[noreturn]] void fail(std::string_view name, std::string_view why) {
  throw Error(Errc::invalid_argument, fmt::format("the name '{}' {}", name, why));
}

// The placeholder that begins with the brace at the front of `text`.
Placeholder placeholder_at(std::string_view name, std::string_view text) {
  const std::string_view word = text.substr(0, text.find('}') + 1);
  if (word == "{layer}") return Placeholder::layer;
  if (word == "{expert}") return Placeholder::expert;
  fail(name, fmt::format("has '{}', but the placeholders are {{layer}} and {{expert}}",
                         word.empty() ? text : word));
}

void check_neighbours(std::string_view name, std::string_view before, std::string_view behind) {
  const bool digit =
      (!before.empty() && is_digit(before.back())) || (!behind.empty() && is_digit(behind.front()));
  if (digit || behind.starts_with('{')) {
    fail(name, fmt::format("has a {} beside a placeholder", digit ? "digit" : "placeholder"));
  }
}

}  // namespace

NamePattern NamePattern::parse(std::string_view text) {
  if (text.empty()) throw Error(Errc::invalid_argument, "the name is empty");
  NamePattern pattern;
  std::string_view rest = text;
  for (std::size_t brace; (brace = rest.find_first_of("{}")) != std::string_view::npos;) {
    const std::string_view before = rest.substr(0, brace);
    rest.remove_prefix(brace);
    const Placeholder which = placeholder_at(text, rest);
    if (pattern.has(which)) fail(text, "has a placeholder twice");
    rest.remove_prefix(rest.find('}') + 1);
    check_neighbours(text, before, rest);
    pattern.texts_.back() = before;
    pattern.texts_.emplace_back();
    pattern.placeholders_.push_back(which);
  }
  pattern.texts_.back() = rest;
  if (pattern.has_expert() && !pattern.has_layer()) fail(text, "has {expert}, but no {layer}");
  return pattern;
}

bool NamePattern::has(Placeholder which) const noexcept {
  return std::ranges::find(placeholders_, which) != placeholders_.end();
}

std::string NamePattern::name(std::int64_t layer, std::int64_t expert) const {
  std::string name = texts_.front();
  for (std::size_t i = 0; i < placeholders_.size(); ++i) {
    name += std::to_string(placeholders_[i] == Placeholder::layer ? layer : expert);
    name += texts_[i + 1];
  }
  return name;
}

bool NameTable::overlap(const Entry& a, const Entry& b) {
  return std::ranges::equal(a.numbers, b.numbers, [](const Number& mine, const Number& theirs) {
    return mine.any || theirs.any || mine.digits == theirs.digits;
  });
}

// What a name's digits say, if they are those of the entry.
std::optional<Claim> NameTable::match(const Entry& entry,
                                      const std::vector<std::string_view>& numbers) {
  if (entry.numbers.size() != numbers.size()) return std::nullopt;
  Claim claim{.rule = entry.rule};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Number& wanted = entry.numbers[i];
    if (!wanted.any) {
      if (wanted.digits != numbers[i]) return std::nullopt;
      continue;
    }
    const auto number = number_of(numbers[i]);
    if (!number) return std::nullopt;
    (*wanted.any == Placeholder::layer ? claim.layer : claim.expert) = *number;
  }
  return claim;
}

std::optional<std::uint32_t> NameTable::add(const NamePattern& pattern, std::uint32_t rule) {
  Entry entry{.numbers = {}, .rule = rule};
  std::string rest;
  for (std::size_t i = 0; i < pattern.texts().size(); ++i) {
    Dissected parts;
    dissect(pattern.texts()[i], parts);
    rest += parts.rest;
    for (const std::string_view digits : parts.numbers) {
      entry.numbers.push_back({std::string(digits), std::nullopt});
    }
    if (i == pattern.placeholders().size()) break;
    rest += number_mark;
    entry.numbers.push_back({{}, pattern.placeholders()[i]});
  }
  std::vector<Entry>& rivals = entries_[rest];
  for (const Entry& rival : rivals) {
    if (overlap(rival, entry)) return rival.rule;
  }
  rivals.push_back(std::move(entry));
  return std::nullopt;
}

std::optional<Claim> NameTable::find(std::string_view name) const {
  Dissected parts;
  dissect(name, parts);
  const auto found = entries_.find(parts.rest);
  if (found == entries_.end()) return std::nullopt;
  for (const Entry& entry : found->second) {
    if (const auto claim = match(entry, parts.numbers)) return claim;
  }
  return std::nullopt;
}

}  // namespace remesh::detail
