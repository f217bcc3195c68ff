#include "name_table.hpp"

#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/error.hpp"

namespace remesh::detail {
namespace {

constexpr std::string_view layer_placeholder = "{layer}";
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

// The number of a layer as frameworks write it: decimal, without leading zeros.
std::optional<std::int32_t> layer_number(std::string_view digits) {
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;
  std::int32_t layer = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), layer);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return layer;
}

// The layer that a name's digits say if they are those of the entry; -1 if no layer stands there.
std::optional<std::int32_t> matched_layer(const std::vector<std::string>& wanted,
                                          const std::vector<std::string_view>& numbers) {
  if (wanted.size() != numbers.size()) return std::nullopt;
  std::optional<std::int32_t> layer = -1;
  for (std::size_t i = 0; i < wanted.size() && layer; ++i) {
    if (wanted[i].empty()) {
      layer = layer_number(numbers[i]);
    } else if (wanted[i] != numbers[i]) {
      return std::nullopt;
    }
  }
  return layer;
}

bool overlap(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!a[i].empty() && !b[i].empty() && a[i] != b[i]) return false;
  }
  return true;
}

void refuse_stray_braces(std::string_view whole, std::string_view part) {
  const std::size_t brace = part.find_first_of("{}");
  if (brace == std::string_view::npos) return;
  throw Error(Errc::invalid_argument,
              fmt::format("the name '{}' has '{}', but the one placeholder is {{layer}}, once",
                          whole, part.substr(brace, part.find('}', brace) - brace + 1)));
}

}  // namespace

NamePattern NamePattern::parse(std::string_view text) {
  if (text.empty()) throw Error(Errc::invalid_argument, "the name is empty");
  NamePattern pattern;
  const std::size_t at = text.find(layer_placeholder);
  pattern.has_layer_ = at != std::string_view::npos;
  pattern.before_layer_ = text.substr(0, at);
  if (pattern.has_layer_) pattern.after_layer_ = text.substr(at + layer_placeholder.size());
  refuse_stray_braces(text, pattern.before_layer_);
  refuse_stray_braces(text, pattern.after_layer_);
  const bool digit_before = pattern.has_layer_ && at > 0 && is_digit(text[at - 1]);
  if (digit_before || (!pattern.after_layer_.empty() && is_digit(pattern.after_layer_.front()))) {
    throw Error(Errc::invalid_argument,
                fmt::format("the name '{}' has a digit beside {{layer}}", text));
  }
  return pattern;
}

std::string NamePattern::name(std::int64_t layer) const {
  if (!has_layer_) return before_layer_;
  return fmt::format("{}{}{}", before_layer_, layer, after_layer_);
}

std::optional<std::uint32_t> NameTable::add(const NamePattern& pattern, std::uint32_t rule) {
  Dissected parts;
  dissect(pattern.before_layer(), parts);
  if (pattern.has_layer()) {
    parts.rest += number_mark;
    parts.numbers.emplace_back();
    dissect(pattern.after_layer(), parts);
  }
  Entry entry{.numbers = {parts.numbers.begin(), parts.numbers.end()}, .rule = rule};
  std::vector<Entry>& rivals = entries_[parts.rest];
  for (const Entry& rival : rivals) {
    if (overlap(rival.numbers, entry.numbers)) return rival.rule;
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
    if (const auto layer = matched_layer(entry.numbers, parts.numbers))
      return Claim{entry.rule, *layer};
  }
  return std::nullopt;
}

}  // namespace remesh::detail
