#include "repair_salvage.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "canonical_text.hpp"
#include "json_tree.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/file_system.hpp"

namespace remesh::native {
namespace {

constexpr std::size_t npos = std::string_view::npos;

// Each costs a look at all of the text; where more are damaged little is left to prove.
constexpr int most_missing = 4096;

// Behind a string whose opening quote is at `at`; the end of the text if it has no other quote.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i + 1;
    }
  }
  return text.size();
}

bool opens(char c) noexcept { return c == '{' || c == '['; }
bool closes(char c) noexcept { return c == '}' || c == ']'; }

// Where a JSON text, object, array or null that begins at `at` ends; nothing if it does not.
std::optional<std::size_t> end_of_value(std::string_view text, std::size_t at) {
  int depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (depth == 0 && (c == ',' || closes(c))) return at;
    at = c == '"' ? end_of_string(text, at) : at + 1;
    if (opens(c)) ++depth;
    if (closes(c)) --depth;
    if (depth == 0 && (c == '"' || closes(c))) return at;
  }
  return std::nullopt;
}

// The value that begins at `begin`, if it is JSON.
std::optional<std::string> value_at(std::string_view text, std::size_t begin) {
  const auto end = end_of_value(text, begin);
  if (!end || !Json::accept(text.substr(begin, *end - begin))) return std::nullopt;
  return std::string(text.substr(begin, *end - begin));
}

// The value of a key that only the manifest itself has.
std::optional<std::string> value_of(std::string_view text, std::string_view key) {
  const std::string quoted = fmt::format("\"{}\":", key);
  const std::size_t at = text.find(quoted);
  return at == npos ? std::nullopt : value_at(text, at + quoted.size());
}

std::optional<std::int32_t> number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == npos) return std::nullopt;
  std::int32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [after, wrong] = std::from_chars(text.data() + at + key.size(), end, number);
  if (wrong != std::errc() || after == end || (*after != ',' && *after != '}')) return std::nullopt;
  return number;
}

// What stands around the name of a tensor, between the braces of its entry.
std::optional<Placed> placed_at(std::string_view text, std::size_t name, std::size_t name_bytes) {
  const std::size_t begin = text.rfind('{', name);
  const std::size_t end = text.find('}', name + name_bytes);
  if (begin == npos || end == npos) return std::nullopt;
  const std::string_view before = text.substr(begin, name - begin);
  const std::string_view after = text.substr(name + name_bytes, end + 1 - name - name_bytes);
  const auto layer = number_after(before, R"("layer":)");
  const auto placement = number_after(after, R"(,"placement":)");
  if (!layer || !placement || *placement < 0) return std::nullopt;
  const auto expert = number_after(before, R"("expert":)");
  return Placed{static_cast<std::uint32_t>(*placement), *layer, expert.value_or(-1)};
}

struct Numbered {
  std::string rest;  // the name, each number a '#'
  std::vector<std::int32_t> numbers;
};

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

Numbered numbers_in(std::string_view name) {
  Numbered out;
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (!is_digit(name[at])) {
      out.rest += name[at];
      continue;
    }
    std::int32_t number = -1;
    const auto [after, wrong] =
        std::from_chars(name.data() + at, name.data() + name.size(), number);
    at = static_cast<std::size_t>(after - name.data()) - 1;
    out.rest += '#';
    out.numbers.push_back(wrong == std::errc() ? number : -1);
  }
  return out;
}

// Which tensors with such a name are known, and what they have in common.
struct Siblings {
  std::vector<std::pair<std::vector<std::int32_t>, Placed>> all;

  std::int32_t infer(const std::vector<std::int32_t>& numbers, std::int32_t Placed::*field) const {
    for (std::size_t at = 0; at < numbers.size(); ++at) {
      if (std::ranges::all_of(
              all, [&](const auto& each) { return each.first[at] == each.second.*field; })) {
        return numbers[at];
      }
    }
    return all.front().second.*field;
  }
};

// Most manifests have a placement for each tensor; others share them among those of one kind.
void infer_missing(std::span<const TensorDesc> tensors, bool one_each,
                   std::vector<std::optional<Placed>>& placed) {
  // A '#' may stand in a name itself, so that the rest alone does not tell how many numbers it has.
  std::map<std::pair<std::string, std::size_t>, Siblings> by_name;
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    if (!placed[tensor]) continue;
    Numbered name = numbers_in(tensors[tensor].name);
    Siblings& siblings = by_name[{std::move(name.rest), name.numbers.size()}];
    siblings.all.emplace_back(std::move(name.numbers), *placed[tensor]);
  }
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    if (placed[tensor]) continue;
    Placed guess{one_each ? static_cast<std::uint32_t>(tensor) : 0};
    const Numbered name = numbers_in(tensors[tensor].name);
    const auto at = by_name.find({name.rest, name.numbers.size()});
    if (at != by_name.end()) {
      guess.layer = at->second.infer(name.numbers, &Placed::layer);
      guess.expert = at->second.infer(name.numbers, &Placed::expert);
      if (!one_each) guess.placement = at->second.all.front().second.placement;
    }
    placed[tensor] = guess;
  }
}

}  // namespace

std::optional<Salvage> salvage(std::string_view text, std::span<const TensorDesc> tensors) {
  auto layout = value_of(text, "layout");
  auto mesh = value_of(text, "mesh");
  if (!layout || !mesh) return std::nullopt;
  Salvage out{.layout = std::move(*layout),
              .mesh = std::move(*mesh),
              .packaging = value_of(text, "packaging"),
              .run_id = value_of(text, "run_id").value_or("\"\""),
              .placed = {}};
  std::vector<std::optional<Placed>> placed(tensors.size());
  std::size_t from = 0;
  int missing = 0;
  for (std::size_t tensor = 0; tensor < tensors.size() && missing <= most_missing; ++tensor) {
    const std::string name = fmt::format(R"("name":{})", dump(tensors[tensor].name));
    const std::size_t at = text.find(name, from);
    if (at != npos) placed[tensor] = placed_at(text, at, name.size());
    if (placed[tensor]) {
      from = at + name.size();
    } else {
      ++missing;
    }
  }
  const Json tree = Json::parse(out.layout, nullptr, /*allow_exceptions=*/false);
  const bool one_each = tree.is_object() && tree.contains("placements") &&
                        tree.at("placements").size() == tensors.size();
  infer_missing(tensors, one_each, placed);
  out.placed.reserve(placed.size());
  for (const auto& each : placed) out.placed.push_back(*each);
  return out;
}

// Tree hashes have such a key too, and an axis may be called so; but both stand before it.
std::optional<std::vector<SideFile>> salvage_side(std::string_view text) {
  constexpr std::string_view key = R"("side":)";
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const std::size_t at = text.rfind(key);
  const auto value = at == npos ? std::nullopt : value_at(text, at + key.size());
  if (!value) return std::nullopt;
  try {
    std::vector<SideFile> side;
    for (const Json& each : parse_json(*value, {})) {
      const Members members(each, "a side file", {"digest", "name", "size"});
      const auto digest = parse_digest(members.text("digest"));
      if (!digest) return std::nullopt;
      check_component(members.text("name"), "manifest.json");
      side.push_back({members.text("name"), members.integer("size", 0, most), *digest});
    }
    if (std::ranges::adjacent_find(side, std::ranges::greater_equal{}, &SideFile::name) !=
        side.end()) {
      return std::nullopt;
    }
    return side;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace remesh::native
