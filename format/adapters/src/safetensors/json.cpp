#include "json.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "remesh/core/name_table.hpp"

namespace remesh::safetensors {
namespace {

// The keys of one object. Most objects have few, and there are many of those.
class Keys {
 public:
  // False if it is there already.
  bool add(std::string_view key) {
    const auto number = static_cast<std::uint32_t>(ends_.size());
    const auto name_of = [this](std::uint32_t at) { return this->at(at); };
    if (number < few) {
      for (std::uint32_t before = 0; before < number; ++before) {
        if (at(before) == key) return false;
      }
    } else {
      for (auto before = static_cast<std::uint32_t>(table_.size()); before < number; ++before) {
        table_.add(at(before), before, name_of);
      }
      if (table_.find(key, name_of)) return false;
    }
    text_.append(key);
    ends_.push_back(text_.size());
    return true;
  }

  void clear() {
    text_.clear();
    ends_.clear();
    table_.clear();
  }

 private:
  static constexpr std::uint32_t few = 8;

  std::string_view at(std::uint32_t number) const {
    const std::size_t begin = number == 0 ? 0 : ends_[number - 1];
    return std::string_view(text_).substr(begin, ends_[number] - begin);
  }

  std::string text_;  // all of them, one behind the other
  std::vector<std::size_t> ends_;
  NameTable table_;  // once there are more than a few
};

// Counts, compares keys, and passes on.
class Events final : public JsonEvents {
 public:
  explicit Events(JsonHandler& handler) : handler_(handler) {}

  bool begin(bool is_object) override {
    if (depth_ == max_json_depth) {
      return refuse(
          defect("RM605", fmt::format("its JSON nests more than {} deep", max_json_depth)));
    }
    if (++depth_ > open_.size()) open_.emplace_back();
    open_[depth_ - 1].clear();
    return handler_.open(depth_, is_object);
  }

  bool end() override {
    if (!handler_.close(depth_)) return false;
    --depth_;
    return true;
  }

  bool scalar(const JsonScalar& value) override { return handler_.scalar(depth_, value); }

  bool key(std::string_view key) override {
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

 private:
  bool refuse(Defect what) {
    handler_.objection = std::move(what);
    return false;
  }

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
  Events events(handler);
  if (const auto fault = read_json(text, events)) {
    const std::size_t at = fault->byte - 1;
    const bool is_nul = at < text.size() && text[at] == '\0';
    const char* const what = is_nul
                                 ? "its JSON has a NUL at byte {}"
                                 : "its JSON breaks off, or is no JSON in UTF-8, at byte {} of the "
                                   "text";
    handler.objection = defect("RM210", fmt::format(fmt::runtime(what), is_nul ? at : fault->byte),
                               "the file is damaged");
  }
  return !handler.objection;
}

}  // namespace remesh::safetensors
