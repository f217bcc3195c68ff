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

}  // namespace

std::optional<JsonFault> read_json(std::string_view text, JsonEvents& events,
                                   std::size_t padding_bytes) {
  static_assert(json_padding_bytes >= simdjson::SIMDJSON_PADDING);
  const bool copy = padding_bytes < json_padding_bytes;
  // simdjson 3.0 lets half of a surrogate pair pass. What it refuses is read again by the library
  // that says where, or that knows better: of numbers beyond 64 bits, and a mark of byte order.
  if (!text.empty() && text.find("\\u") == std::string_view::npos) {
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
