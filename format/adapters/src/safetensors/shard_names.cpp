#include "shard_names.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "defect.hpp"

namespace remesh::safetensors {
namespace {

constexpr std::string_view ending = ".safetensors";
constexpr std::size_t most_digits = 9;

/// One file of a set.
struct ShardName {
  std::string stem;  // "model-"
  std::string count_text;
  std::int64_t count = 0;
  std::int64_t number = 0;
  std::size_t digits = 0;  // of the number
};

// The number that is all of `text`.
std::optional<std::int64_t> whole_number(std::string_view text) {
  if (text.empty() || text.size() > most_digits) return std::nullopt;
  std::int64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  return is_whole && text.front() != '-' ? std::optional(number) : std::nullopt;
}

std::optional<ShardName> parse(std::string_view name) {
  constexpr std::string_view of = "-of-";
  if (!name.ends_with(ending)) return std::nullopt;
  name.remove_suffix(ending.size());
  const std::size_t at = name.rfind(of);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view before = name.substr(0, at);
  const std::size_t dash = before.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::string_view count_text = name.substr(at + of.size());
  const std::string_view number_text = before.substr(dash + 1);
  const auto count = whole_number(count_text);
  const auto number = whole_number(number_text);
  if (!count || !number || *number > *count) return std::nullopt;
  return ShardName{std::string(before.substr(0, dash + 1)), std::string(count_text), *count,
                   *number, number_text.size()};
}

/// The files of a set that are there.
struct Present {
  ShardName shard;  // the first of them
  std::string first;
  std::set<std::int64_t> numbers;
};

// Those of one stem and one count belong together.
using Sets = std::map<std::pair<std::string, std::string>, Present>;

std::optional<CutSet> cut_set(const Present& present) {
  constexpr std::size_t most_named = 3;
  const ShardName& shard = present.shard;
  const std::int64_t begin = present.numbers.contains(0) ? 0 : 1;
  const std::int64_t end = begin + shard.count;
  CutSet cut{present.first, shard.count, shard.count, {}};
  for (const std::int64_t number : present.numbers) cut.absent -= number < end ? 1 : 0;
  if (cut.absent <= 0) return std::nullopt;
  for (std::int64_t k = begin; k < end && cut.names.size() < most_named; ++k) {
    if (present.numbers.contains(k)) continue;
    cut.names.push_back(
        fmt::format("{}{:0{}}-of-{}{}", shard.stem, k, shard.digits, shard.count_text, ending));
  }
  return cut;
}

}  // namespace

std::vector<CutSet> cut_sets(const std::set<std::string>& chosen,
                             const std::set<std::string>& beside) {
  Sets sets;
  for (const std::string& name : chosen) {
    auto shard = parse(name);
    if (!shard) continue;
    auto& present = sets[{shard->stem, shard->count_text}];
    present.numbers.insert(shard->number);
    if (present.first.empty()) present = {std::move(*shard), name, std::move(present.numbers)};
  }
  for (const std::string& name : beside) {
    const auto shard = parse(name);
    if (!shard) continue;
    const auto found = sets.find({shard->stem, shard->count_text});
    if (found != sets.end()) found->second.numbers.insert(shard->number);
  }
  std::vector<CutSet> cut;
  for (const auto& [key, present] : sets) {
    if (auto set = cut_set(present)) cut.push_back(std::move(*set));
  }
  return cut;
}

void report_cut_sets(const std::vector<CutSet>& sets, Findings& findings) {
  for (const CutSet& set : sets) {
    const std::int64_t unnamed = set.absent - static_cast<std::int64_t>(set.names.size());
    Defect finding =
        defect("RM203",
               fmt::format("by its name it is one of {} files, but {} of them are absent: {}{}",
                           set.count, set.absent, listed(set.names),
                           unnamed > 0 ? fmt::format(" and {} more", unnamed) : ""),
               "download or copy them again; a save that was stopped has none to copy, so use the "
               "one before it");
    finding.found = fmt::format("{} files", set.count - set.absent);
    finding.expected = fmt::format("{} files", set.count);
    report(findings, set.first, std::move(finding));
  }
}

}  // namespace remesh::safetensors
