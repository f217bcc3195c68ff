#include "thorough.hpp"

#include <utility>

#include <nlohmann/json.hpp>

namespace remesh::detail {
namespace {

using Json = nlohmann::json;

// The library's events in our words.
class Forwarded final : public nlohmann::json_sax<Json> {
 public:
  explicit Forwarded(JsonEvents& events) : events_(events) {}

  bool null() override { return events_.scalar({}); }
  bool boolean(bool value) override {
    return events_.scalar({.kind = JsonScalar::Kind::boolean, .natural = value ? 1U : 0U});
  }
  bool number_integer(number_integer_t value) override {
    return events_.scalar({.kind = JsonScalar::Kind::negative, .negative = value});
  }
  bool number_unsigned(number_unsigned_t value) override {
    return events_.scalar({.kind = JsonScalar::Kind::natural, .natural = value});
  }
  bool number_float(number_float_t value, const string_t&) override {
    return events_.scalar({.kind = JsonScalar::Kind::real, .real = value});
  }
  bool string(string_t& value) override {
    return events_.scalar({.kind = JsonScalar::Kind::text, .text = value});
  }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return events_.begin(/*is_object=*/true); }
  bool key(string_t& key) override { return events_.key(key); }
  bool end_object() override { return events_.end(); }
  bool start_array(std::size_t) override { return events_.begin(/*is_object=*/false); }
  bool end_array() override { return events_.end(); }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    fault = {position, error.what()};
    return false;
  }

  std::optional<JsonFault> fault;

 private:
  JsonEvents& events_;
};

}  // namespace

std::optional<JsonFault> read_thoroughly(std::string_view text, JsonEvents& events) {
  // The parser takes a NUL for the end of the text, and would not look at what follows.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return JsonFault{nul + 1, "it is a NUL"};
  }
  Forwarded forwarded(events);
  Json::sax_parse(text.begin(), text.end(), &forwarded);
  return std::move(forwarded.fault);
}

}  // namespace remesh::detail
