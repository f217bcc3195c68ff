#include "config.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "remesh/core/error.hpp"

namespace remesh::detail {
namespace {

using nlohmann::json;

constexpr int deepest = 64;

[[noreturn]] void fail(const std::string& why) {
  throw Error(Errc::corrupt, "cannot read config.json: " + why);
}

// Refuses what a JSON parser lets pass: great depth, and keys that are there twice.
class Guard {
 public:
  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    const bool opens =
        event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
    if (opens && depth >= deepest) fail(fmt::format("it is nested deeper than {}", deepest));
    if (event == json::parse_event_t::key && depth == 1) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_.insert(key).second) fail(fmt::format("it says '{}' twice", key));
    }
    return true;
  }

 private:
  std::set<std::string> keys_;
};

json parsed_object(std::string_view text) {
  json config;
  try {
    Guard guard;
    config = json::parse(text, [&guard](int depth, json::parse_event_t event, json& parsed) {
      return guard(depth, event, parsed);
    });
  } catch (const json::parse_error& error) {
    fail(fmt::format("it is no valid JSON at byte {}", error.byte));
  } catch (const json::exception&) {
    fail("a number in it is out of range");
  }
  if (!config.is_object())
    fail(fmt::format("it is of kind {}, but an object is expected", config.type_name()));
  return config;
}

std::string shown(const json& value) {
  constexpr std::size_t longest = 40;
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  if (text.size() > longest) text = text.substr(0, longest) + "...";
  return text;
}

bool is_index(const json& value) {
  constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<Index>::max());
  if (value.is_number_unsigned()) return value.get<std::uint64_t>() <= largest;
  return value.is_number_integer();
}

}  // namespace

Config Config::parse(std::string_view text) {
  Config config;
  config.present_ = !text.empty();
  if (!config.present_) return config;
  const json object = parsed_object(text);
  const auto keep = [&config](const std::string& key, const json& value) {
    if (value.is_null()) return;
    Value& kept = config.values_[key];
    if (value.is_boolean()) {
      kept = value.get<bool>();
    } else if (value.is_string()) {
      kept = value.get<std::string>();
    } else if (is_index(value)) {
      kept = value.get<Index>();
    } else {
      kept = Other{shown(value)};
    }
  };
  for (const auto& [key, value] : object.items()) {
    keep(key, value);
    if (!value.is_object()) continue;
    for (const auto& [inner, inner_value] : value.items())
      keep(fmt::format("{}.{}", key, inner), inner_value);
  }
  return config;
}

template <typename T>
std::optional<T> Config::value(std::string_view key, std::string_view kind) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  if (const T* value = std::get_if<T>(&found->second)) return *value;
  const std::string what = std::visit(
      [](const auto& other) {
        if constexpr (std::is_same_v<decltype(other), const Other&>)
          return other.shown;
        else
          return shown(json(other));
      },
      found->second);
  fail(fmt::format("'{}' is {}, but {} is expected", key, what, kind));
}

std::optional<Index> Config::size(std::string_view key, Index least) const {
  const std::string_view kind = least > 0 ? "a positive whole number" : "a whole number";
  const auto size = value<Index>(key, kind);
  if (size && *size < least) fail(fmt::format("'{}' is {}, but {} is expected", key, *size, kind));
  return size;
}

std::optional<bool> Config::flag(std::string_view key) const {
  return value<bool>(key, "true or false");
}

std::optional<std::string> Config::text(std::string_view key) const {
  return value<std::string>(key, "a text");
}

}  // namespace remesh::detail
