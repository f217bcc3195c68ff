#include "json_tree.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "damage.hpp"
#include "remesh/json/events.hpp"

namespace remesh::native {
namespace {

constexpr std::size_t most_depth = 64;
constexpr std::int64_t most_values = 16'000'000;

// Builds the tree from the parser's events.
class TreeBuilder final : public JsonEvents {
 public:
  explicit TreeBuilder(const JsonStream& stream) : stream_(stream) {}

  Json take() { return std::move(root_); }

  bool scalar(const JsonScalar& value) override {
    switch (value.kind) {
      case JsonScalar::Kind::null:
        return add(nullptr);
      case JsonScalar::Kind::boolean:
        return add(value.natural != 0);
      case JsonScalar::Kind::natural:
        return natural(value.natural);
      case JsonScalar::Kind::negative:
        return integer(value.negative);
      case JsonScalar::Kind::real:
        if (in_flat_) throw NotFlat();
        damaged(fmt::format("the number {} is no integer", value.real), "RM103");
      case JsonScalar::Kind::text:
        break;
    }
    return text(value.text);
  }

  bool begin(bool is_object) override { return is_object ? begin_object() : begin_array(); }

  bool key(std::string_view name) override {
    if (in_flat_) {
      member_ = &flat_.add();
      member_->key = name;
      return true;
    }
    Frame& frame = frames_.back();
    if (frame.value.contains(name)) {
      damaged(fmt::format("the key {:?} stands twice in one object", name), "RM608");
    }
    frame.key = name;
    return true;
  }

  bool end() override {
    if (!in_flat_) return close();
    if (in_array_) {
      in_array_ = false;
      member_ = nullptr;
      return true;
    }
    in_flat_ = false;
    if (!stream_.take_flat(flat_)) throw NotFlat();
    return true;
  }

 private:
  bool natural(std::uint64_t value) {
    if (value <= static_cast<std::uint64_t>(INT64_MAX)) {
      return integer(static_cast<std::int64_t>(value));
    }
    if (in_flat_) throw NotFlat();
    damaged(fmt::format("the number {} has more than 63 bits", value), "RM103");
  }

  bool integer(std::int64_t value) { return in_flat_ ? add_flat(value) : add(value); }

  bool text(std::string_view value) {
    if (!in_flat_) return add(value);
    if (member_ == nullptr || in_array_) throw NotFlat();
    member_->kind = FlatObject::Member::Kind::text;
    member_->text = value;
    member_ = nullptr;
    return true;
  }

  bool begin_object() {
    if (in_flat_) throw NotFlat();
    if (!stream_.take_flat || !is_streamed()) return open(Json::object());
    in_flat_ = true;
    flat_.clear();
    return true;
  }

  bool begin_array() {
    if (!in_flat_) return open(Json::array());
    if (member_ == nullptr || in_array_) throw NotFlat();
    member_->kind = FlatObject::Member::Kind::integers;
    member_->integers.clear();
    in_array_ = true;
    return true;
  }

  struct Frame {
    Json value;
    std::string key;
    std::int64_t values_before = 0;
  };

  // Whether what begins now is an element of the stream.
  bool is_streamed() const {
    return frames_.size() == 2 && frames_.front().key == stream_.key &&
           frames_.back().value.is_array();
  }

  bool add_flat(std::int64_t value) {
    if (member_ == nullptr) throw NotFlat();
    if (in_array_) {
      member_->integers.push_back(value);
      return true;
    }
    member_->kind = FlatObject::Member::Kind::integer;
    member_->integer = value;
    member_ = nullptr;
    return true;
  }

  bool open(Json value) {
    if (frames_.size() >= most_depth) {
      damaged(fmt::format("its JSON is nested deeper than {}", most_depth), "RM605");
    }
    frames_.push_back({std::move(value), {}, values_});
    return true;
  }

  bool close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    if (is_streamed()) {
      stream_.take(frame.value);
      values_ = frame.values_before;
      return true;
    }
    return add(std::move(frame.value));
  }

  bool add(Json value) {
    if (in_flat_) throw NotFlat();
    if (++values_ > most_values) {
      damaged(fmt::format("its JSON has more than {} values", most_values), "RM605");
    }
    if (frames_.empty()) {
      root_ = std::move(value);
    } else if (Frame& frame = frames_.back(); frame.value.is_array()) {
      frame.value.push_back(std::move(value));
    } else {
      frame.value[frame.key] = std::move(value);
    }
    return true;
  }

  const JsonStream& stream_;
  std::vector<Frame> frames_;
  Json root_;
  std::int64_t values_ = 0;

  bool in_flat_ = false;
  FlatObject flat_;
  FlatObject::Member* member_ = nullptr;  // whose value comes next
  bool in_array_ = false;
};

}  // namespace

FlatObject::Member& FlatObject::add() {
  if (size_ == members_.size()) members_.emplace_back();
  return members_[size_++];
}

const FlatObject::Member* FlatObject::find(std::string_view key, Member::Kind kind) const noexcept {
  for (std::size_t at = 0; at < size_; ++at) {
    if (members_[at].key == key) return members_[at].kind == kind ? &members_[at] : nullptr;
  }
  return nullptr;
}

Json parse_json(std::string_view text, const JsonStream& stream, std::size_t padding_bytes) {
  TreeBuilder builder(stream);
  if (const auto fault = read_json(text, builder, padding_bytes)) {
    damaged(fmt::format("it is no JSON at byte {}: {}", fault->byte, fault->why), "RM103");
  }
  return builder.take();
}

Members::Members(const Json& value, std::string where, std::initializer_list<std::string_view> keys,
                 std::int64_t number)
    : value_(value), where_(std::move(where)), number_(number) {
  if (!value.is_object()) damaged(fmt::format("{} is no object", this->where()), "RM103");
  for (auto member = value.begin(); member != value.end(); ++member) {
    if (std::ranges::find(keys, member.key()) == keys.end()) {
      damaged(fmt::format("{} has the unknown key {:?}", this->where(), member.key()), "RM103");
    }
  }
  for (const std::string_view key : keys) at(key);
}

std::string Members::where() const {
  return number_ < 0 ? where_ : fmt::format("{} {}", where_, number_);
}

const Json& Members::at(std::string_view key) const {
  const auto member = value_.find(key);
  if (member == value_.end()) damaged(fmt::format("{} lacks the key '{}'", where(), key), "RM103");
  return *member;
}

void Members::wrong(std::string_view key, std::string_view expected) const {
  std::string found = at(key).dump(-1, ' ', /*ensure_ascii=*/true);
  if (found.size() > 60) found = found.substr(0, 60) + "...";
  damaged(fmt::format("'{}' of {} is {}, but {} is expected", key, where(), found, expected),
          "RM103");
}

const std::string& Members::text(std::string_view key) const {
  if (!at(key).is_string()) wrong(key, "text");
  return at(key).get_ref<const std::string&>();
}

const Json& Members::array(std::string_view key) const {
  if (!at(key).is_array()) wrong(key, "an array");
  return at(key);
}

bool Members::boolean(std::string_view key) const {
  if (!at(key).is_boolean()) wrong(key, "true or false");
  return at(key).get<bool>();
}

std::int64_t Members::integer(std::string_view key, std::int64_t least, std::int64_t most) const {
  const Json& value = at(key);
  if (!value.is_number_integer() || value.get<std::int64_t>() < least ||
      value.get<std::int64_t>() > most) {
    wrong(key, fmt::format("an integer in [{}, {}]", least, most));
  }
  return value.get<std::int64_t>();
}

std::vector<std::int64_t> Members::integers(std::string_view key, std::int64_t least,
                                            std::int64_t most) const {
  std::vector<std::int64_t> values;
  for (const Json& value : array(key)) {
    if (!value.is_number_integer() || value.get<std::int64_t>() < least ||
        value.get<std::int64_t>() > most) {
      wrong(key, fmt::format("an array of integers in [{}, {}]", least, most));
    }
    values.push_back(value.get<std::int64_t>());
  }
  return values;
}

std::vector<std::string> Members::texts(std::string_view key) const {
  std::vector<std::string> values;
  for (const Json& value : array(key)) {
    if (!value.is_string()) wrong(key, "an array of texts");
    values.push_back(value.get<std::string>());
  }
  return values;
}

}  // namespace remesh::native
