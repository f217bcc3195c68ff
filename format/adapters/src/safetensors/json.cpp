#include "json.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace remesh::safetensors {
namespace {

using Json = nlohmann::json;

// The keys of one object. Most objects have few, and there are many of those.
class Keys {
 public:
  // False if it is there already.
  bool add(const std::string& key) {
    if (few_ < few) {
      const auto end = first_.begin() + static_cast<std::ptrdiff_t>(few_);
      if (std::find(first_.begin(), end, key) != end) return false;
      first_[few_++] = key;
      return true;
    }
    if (more_.empty()) more_.insert(first_.begin(), first_.end());
    return more_.insert(key).second;
  }

  void clear() {
    few_ = 0;
    if (!more_.empty()) more_.clear();
  }

 private:
  static constexpr std::size_t few = 8;
  std::array<std::string, few> first_;
  std::size_t few_ = 0;
  std::unordered_set<std::string> more_;  // all of them, once there are more than a few
};

// Counts, compares keys, and passes on.
class Events final : public nlohmann::json_sax<Json> {
 public:
  explicit Events(JsonHandler& handler) : handler_(handler) {}

  bool null() override { return scalar({.kind = JsonScalar::Kind::null}); }
  bool boolean(bool value) override {
    return scalar({.kind = JsonScalar::Kind::boolean, .natural = value ? 1U : 0U});
  }
  bool number_integer(number_integer_t) override {
    return scalar({.kind = JsonScalar::Kind::negative});
  }
  bool number_unsigned(number_unsigned_t value) override {
    return scalar({.kind = JsonScalar::Kind::natural, .natural = value});
  }
  bool number_float(number_float_t value, const string_t&) override {
    return scalar({.kind = JsonScalar::Kind::real, .real = value});
  }
  bool string(string_t& value) override {
    return scalar({.kind = JsonScalar::Kind::text, .text = &value});
  }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(/*is_object=*/true); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(/*is_object=*/false); }
  bool end_array() override { return close(); }

  bool key(string_t& key) override {
    if (key.size() > max_key_bytes) {
      return refuse(defect("RM605", fmt::format("it has a name of {} bytes ('{}'), but at most {} "
                                                "are read",
                                                key.size(), shown(key), max_key_bytes)));
    }
    if (++keys_ > max_keys) {
      return refuse(defect("RM605", fmt::format("it has more than {} names", max_keys)));
    }
    if (!open_[depth_ - 1].add(key)) {
      return refuse(defect("RM608",
                           fmt::format("the key '{}' stands there twice, but readers differ in "
                                       "which of the two they take",
                                       shown(key)),
                           "do not load this file"));
    }
    return handler_.key(depth_, key);
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return refuse(defect("RM210",
                         fmt::format("its JSON breaks off, or is no JSON in UTF-8, at "
                                     "byte {} of the text",
                                     position),
                         "the file is damaged"));
  }

 private:
  bool refuse(Defect what) {
    handler_.objection = std::move(what);
    return false;
  }

  bool open(bool is_object) {
    if (depth_ == max_json_depth) {
      return refuse(
          defect("RM605", fmt::format("its JSON nests more than {} deep", max_json_depth)));
    }
    if (++depth_ > open_.size()) open_.emplace_back();
    open_[depth_ - 1].clear();
    return handler_.open(depth_, is_object);
  }

  bool close() {
    if (!handler_.close(depth_)) return false;
    --depth_;
    return true;
  }

  bool scalar(const JsonScalar& value) { return handler_.scalar(depth_, value); }

  JsonHandler& handler_;
  std::vector<Keys> open_;  // of each open object; those beyond depth_ are kept for their memory
  std::size_t depth_ = 0;
  std::size_t keys_ = 0;
};

}  // namespace

bool JsonHandler::refuse(Defect what) {
  objection = std::move(what);
  return false;
}

bool parse_json(std::string_view text, JsonHandler& handler) {
  // The parser takes a NUL for the end of the text, and would not look at what follows.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    handler.objection =
        defect("RM210", fmt::format("its JSON has a NUL at byte {}", nul), "the file is damaged");
    return false;
  }
  Events events(handler);
  return Json::sax_parse(text.begin(), text.end(), &events);
}

}  // namespace remesh::safetensors
