#include "remesh/json/events.hpp"

#include <simdjson.h>

#include "thorough.hpp"

namespace remesh {
namespace {

namespace dom = simdjson::dom;

// Tells of a text that was found to be JSON. How deep it goes is for the events to limit.
class Walk {
 public:
  explicit Walk(JsonEvents& events) : events_(events) {}

  bool tell(const dom::element& element) {
    switch (element.type()) {
      case dom::element_type::OBJECT:
        return tell_object(element.get_object().value_unsafe());
      case dom::element_type::ARRAY:
        return tell_array(element.get_array().value_unsafe());
      default:
        return events_.scalar(scalar(element));
    }
  }

 private:
  bool tell_object(const dom::object& object) {
    if (!events_.begin(/*is_object=*/true)) return false;
    for (const auto [key, value] : object) {
      if (!events_.key(key) || !tell(value)) return false;
    }
    return events_.end();
  }

  bool tell_array(const dom::array& array) {
    if (!events_.begin(/*is_object=*/false)) return false;
    for (const dom::element value : array) {
      if (!tell(value)) return false;
    }
    return events_.end();
  }

  static JsonScalar scalar(const dom::element& element) {
    using Kind = JsonScalar::Kind;
    switch (element.type()) {
      case dom::element_type::STRING:
        return {.kind = Kind::text, .text = element.get_string().value_unsafe()};
      case dom::element_type::UINT64:
        return {.kind = Kind::natural, .natural = element.get_uint64().value_unsafe()};
      case dom::element_type::INT64:
        return integer(element.get_int64().value_unsafe());
      case dom::element_type::DOUBLE:
        return {.kind = Kind::real, .real = element.get_double().value_unsafe()};
      case dom::element_type::BOOL:
        return {.kind = Kind::boolean, .natural = element.get_bool().value_unsafe() ? 1U : 0U};
      default:
        return {};
    }
  }

  static JsonScalar integer(std::int64_t value) {
    if (value < 0) return {.kind = JsonScalar::Kind::negative, .negative = value};
    return {.kind = JsonScalar::Kind::natural, .natural = static_cast<std::uint64_t>(value)};
  }

  JsonEvents& events_;
};

// Of what simdjson builds, 20 bytes for each value: where a text is little else, it is several
// times the text.
bool is_dense(std::string_view text) {
  constexpr std::size_t step = 128;  // a count of one byte each, which compilers do many at a time
  std::size_t begins = 0;
  for (std::size_t at = 0; at < text.size(); at += step) {
    std::uint8_t here = 0;
    for (const char c : text.substr(at, step)) {
      here = static_cast<std::uint8_t>(here + ((c == ',') | (c == '[') | (c == '{')));
    }
    begins += here;
  }
  constexpr std::size_t least_bytes_each = 6;
  constexpr std::size_t small_bytes = std::size_t{1} << 20;
  return text.size() > small_bytes && begins > text.size() / least_bytes_each;
}

// "-0" as a value of its own: simdjson forgets the sign.
bool may_have_negative_zero(std::string_view text) {
  constexpr std::string_view before = ":,[ \t\r\n";
  for (std::size_t at = text.find("-0"); at != std::string_view::npos;
       at = text.find("-0", at + 1)) {
    if (at == 0 || before.find(text[at - 1]) != std::string_view::npos) return true;
  }
  return false;
}

bool is_for_simdjson(std::string_view text) {
  return !text.empty() && !is_dense(text) && !may_have_negative_zero(text);
}

}  // namespace

std::optional<JsonFault> read_json(std::string_view text, JsonEvents& events,
                                   std::size_t padding_bytes) {
  static_assert(json_padding_bytes >= simdjson::SIMDJSON_PADDING);
  const bool copy = padding_bytes < json_padding_bytes;
  // What simdjson refuses is read again by the library that says where, or that knows better: of
  // numbers beyond 64 bits, and a mark of byte order.
  if (is_for_simdjson(text)) {
    dom::parser parser;
    dom::element root;
    if (parser.parse(text.data(), text.size(), copy).get(root) == simdjson::SUCCESS) {
      Walk(events).tell(root);
      return std::nullopt;
    }
  }
  return detail::read_thoroughly(text, events);
}

}  // namespace remesh
