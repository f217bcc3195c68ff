#include "renumbering_words.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace remesh::detail {
namespace {

using Holds = std::map<Index, Index>;

constexpr std::size_t most_listed = 16;

// What is numbered, by the word before the number.
std::string noun_of(std::string_view prefix) {
  const std::string_view bare = prefix.substr(0, prefix.empty() ? 0 : prefix.size() - 1);
  const auto begin = bare.find_last_of("./");
  const std::string_view word = bare.substr(begin == std::string_view::npos ? 0 : begin + 1);
  if (word.find("expert") != std::string_view::npos) return "experts";
  if (word.find("layer") != std::string_view::npos || word == "h" || word == "block" ||
      word == "blocks") {
    return "layers";
  }
  return word.empty() ? "numbers" : fmt::format("'{}'", word);
}

// "3", "3..7" or "3, 5, 9, ...".
std::string listed(std::vector<Index> numbers) {
  const bool run = numbers.size() > 2 && std::ranges::adjacent_find(numbers, [](Index a, Index b) {
                                           return b != a + 1;
                                         }) == numbers.end();
  if (run) return fmt::format("{}..{}", numbers.front(), numbers.back());
  const bool cut = numbers.size() > most_listed;
  if (cut) numbers.resize(most_listed);
  return fmt::format("{}{}", fmt::join(numbers, ", "), cut ? ", ..." : "");
}

std::vector<Index> firsts(const Holds& holds) {
  std::vector<Index> all;
  all.reserve(holds.size());
  for (const auto& [left, right] : holds) all.push_back(left);
  return all;
}

std::vector<Index> seconds(const Holds& holds) {
  std::vector<Index> all;
  all.reserve(holds.size());
  for (const auto& [left, right] : holds) all.push_back(right);
  return all;
}

std::optional<std::string> exchanged(const std::string& noun, const Holds& holds) {
  std::vector<std::string> swaps;
  for (const auto& [left, right] : holds) {
    const auto back = holds.find(right);
    if (back == holds.end() || back->second != left) return std::nullopt;
    if (left < right) swaps.push_back(fmt::format("{} and {}", left, right));
  }
  const bool cut = swaps.size() > most_listed;
  if (cut) swaps.resize(most_listed);
  return fmt::format("{} {}{} are exchanged", noun, fmt::join(swaps, ", "), cut ? ", ..." : "");
}

std::optional<std::string> alone(const std::string& noun, const Holds& holds) {
  if (holds.size() != 1) return std::nullopt;
  const std::string_view one = noun.ends_with('s')
                                   ? std::string_view(noun).substr(0, noun.size() - 1)
                                   : std::string_view(noun);
  return fmt::format("{} {} holds what {} {} should", one, holds.begin()->first, one,
                     holds.begin()->second);
}

std::optional<std::string> shifted(const std::string& noun, const Holds& holds) {
  const Index by = holds.begin()->first - holds.begin()->second;
  for (const auto& [left, right] : holds) {
    if (left - right != by) return std::nullopt;
  }
  return fmt::format("{} {} hold what {} should: shifted by {}", noun, listed(firsts(holds)),
                     listed(seconds(holds)), std::abs(by));
}

// 0, 1, 10, 11, 2: numbers that somebody sorted as texts.
std::optional<std::string> in_text_order(const std::string& noun, const Renumbering& renumbering) {
  std::vector<Index> by_text = renumbering.numbers;
  std::ranges::sort(by_text, {}, [](Index number) { return fmt::format("{}", number); });
  const auto matches = [&](const std::vector<Index>& places, const std::vector<Index>& contents) {
    Holds expected;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (places[i] != contents[i]) expected.emplace(places[i], contents[i]);
    }
    return expected == renumbering.holds;
  };
  const char* how = nullptr;
  if (matches(renumbering.numbers, by_text)) how = "left";
  if (matches(by_text, renumbering.numbers)) how = "right";
  if (how == nullptr) return std::nullopt;
  return fmt::format("{} of the {} side are numbered in the order of their texts (10 before 2)",
                     noun, how);
}

}  // namespace

std::string words_of(const Renumbering& renumbering) {
  const std::string noun = noun_of(renumbering.prefix);
  if (auto words = exchanged(noun, renumbering.holds)) return *words;
  if (auto words = alone(noun, renumbering.holds)) return *words;
  if (auto words = shifted(noun, renumbering.holds)) return *words;
  if (auto words = in_text_order(noun, renumbering)) return *words;
  return fmt::format("{} {} hold what {} should", noun, listed(firsts(renumbering.holds)),
                     listed(seconds(renumbering.holds)));
}

std::string place_and(const std::string& words, std::span<const std::string> prefixes) {
  const std::string_view first = prefixes.front();
  std::string place = fmt::format("{} in '{}'", words, first.substr(0, first.size() - 1));
  if (prefixes.size() == 1) return place;
  return fmt::format("{} and {} more places", place, prefixes.size() - 1);
}

std::string words_of_cycle(std::span<const std::string> names) {
  if (names.size() == 2) return fmt::format("'{}' and '{}' are exchanged", names[0], names[1]);
  std::vector<std::string> parts;
  parts.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    parts.push_back(fmt::format("'{}'{} what '{}' should", names[i], i == 0 ? " holds" : "",
                                names[(i + 1) % names.size()]));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace remesh::detail
