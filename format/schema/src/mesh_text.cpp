#include "remesh/schema/mesh_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "remesh/core/error.hpp"
#include "remesh/schema/near_miss.hpp"

namespace remesh {
namespace {

using Words = std::vector<std::string_view>;

// In the default rank order.
constexpr std::array<std::string_view, 4> axis_names{"tp", "cp", "dp", "pp"};
// Named by the grammar, but without a grid behind them so far.
constexpr std::array<std::string_view, 3> other_names{"ep", "etp", "vpp"};
constexpr std::array<std::string_view, 8> all_keys{"tp", "cp",  "ep",  "dp",
                                                   "pp", "etp", "vpp", "order"};
constexpr std::array<std::string_view, 10> format_names{
    "remesh",        "hf",        "torch",     "dcp",  "fsdp", "megatron",
    "megatron-dist", "deepspeed", "universal", "orbax"};

constexpr Index most_ranks = Index{1} << 31;  // what Mesh accepts

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

Words split_at(std::string_view text, char separator) {
  Words words;
  for (;;) {
    const std::size_t end = text.find(separator);
    words.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return words;
    text.remove_prefix(end + 1);
  }
}

std::string quoted(std::string_view text) {
  constexpr std::size_t longest = 80;
  if (text.size() <= longest) return fmt::format("'{}'", text);
  return fmt::format("'{}...'", text.substr(0, longest));
}

// What a text says, before anything is made of it.
class Written {
 public:
  explicit Written(std::string_view text) : text_(text) {
    if (is_one_of(format_names, text)) {
      throw Error(Errc::invalid_argument,
                  fmt::format("`--mesh` takes a mesh; for a format say `--to {}`", text));
    }
    if (text.empty()) fail("it is empty; write for example tp=2,pp=2");
    Words items = split_at(text, ',');
    same_ = items.front() == "same";
    if (same_) items.erase(items.begin());
    for (const std::string_view item : items) take(item);
  }

  bool same() const noexcept { return same_; }
  const std::optional<Words>& order() const noexcept { return order_; }

  std::optional<Index> size(std::string_view axis) const {
    const auto found = std::ranges::find(sizes_, axis, &Axis::name);
    return found == sizes_.end() ? std::nullopt : std::optional(found->size);
  }

 private:
  [[noreturn]] void fail(std::string_view why) const {
    throw Error(Errc::invalid_argument, fmt::format("cannot read mesh {}: {}", quoted(text_), why));
  }

  void take(std::string_view item) {
    if (item.empty()) fail("a comma has nothing beside it");
    if (item == "same") fail("'same' is not its first word");
    const std::size_t equals = item.find('=');
    const std::string_view key = item.substr(0, equals);
    if (!is_one_of(all_keys, key)) fail_unknown(key);
    if (equals == std::string_view::npos) {
      fail(fmt::format("{0} has no value, but {0}={1} is expected", key,
                       key == "order" ? "tp-cp-dp-pp" : "SIZE"));
    }
    const std::string_view value = item.substr(equals + 1);
    if (key == "order") {
      take_order(value);
    } else {
      take_size(key, value);
    }
  }

  [[noreturn]] void fail_unknown(std::string_view key) const {
    std::string hint = did_you_mean(key, all_keys);
    if (hint.empty()) hint = "; the axes are tp, cp, dp and pp";
    fail(fmt::format("unknown axis {}{}", quoted(key), hint));
  }

  void take_size(std::string_view key, std::string_view value) {
    if (size(key)) fail(fmt::format("{} is given twice", key));
    Index number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool whole = error == std::errc() && end == value.data() + value.size();
    if (!whole || number < 1 || number > most_ranks) {
      fail(fmt::format("{} is {}, but a whole number from 1 to {} is expected", key, quoted(value),
                       most_ranks));
    }
    if (is_one_of(other_names, key) && number > 1) fail_unsupported(key, number);
    sizes_.push_back({std::string(key), number});
  }

  [[noreturn]] void fail_unsupported(std::string_view key, Index number) const {
    throw Error(
        Errc::unsupported,
        fmt::format("cannot use mesh {}: {} is {}, but this build has no {} yet", quoted(text_),
                    key, number, key == "vpp" ? "virtual pipeline stages" : "expert grid"));
  }

  void take_order(std::string_view value) {
    if (order_) fail("order is given twice");
    order_.emplace();
    for (const std::string_view axis : split_at(value, '-')) {
      if (axis == "ep") continue;
      if (!is_one_of(axis_names, axis)) {
        fail(fmt::format("order {} names the unknown axis {}{}", quoted(value), quoted(axis),
                         did_you_mean(axis, axis_names)));
      }
      if (std::ranges::find(*order_, axis) != order_->end()) {
        fail(fmt::format("order {} names {} twice", quoted(value), axis));
      }
      order_->push_back(axis);
    }
    Words absent;
    for (const std::string_view axis : axis_names) {
      if (std::ranges::find(*order_, axis) == order_->end()) absent.push_back(axis);
    }
    if (!absent.empty()) {
      fail(fmt::format("order {} leaves out {}, but it must name each of {} once", quoted(value),
                       fmt::join(absent, ", "), fmt::join(axis_names, ", ")));
    }
  }

  std::string_view text_;
  bool same_ = false;
  std::vector<Axis> sizes_;
  std::optional<Words> order_;
};

// The mesh's own order, with the axes that it lacks put in after their neighbours by default.
Words order_of(const Mesh& mesh) {
  Words order;
  for (const Axis& axis : mesh.axes()) {
    if (is_one_of(axis_names, axis.name)) {
      order.emplace_back(axis.name);
    } else if (axis.size > 1) {
      throw Error(
          Errc::unsupported,
          fmt::format("cannot write mesh {} as text: only tp, cp, dp and pp have a name there",
                      describe(mesh)));
    }
  }
  auto after = order.begin();
  for (const std::string_view axis : axis_names) {
    const auto found = std::ranges::find(order, axis);
    after = std::next(found == order.end() ? order.insert(after, axis) : found);
  }
  return order;
}

}  // namespace

Mesh parse_mesh(std::string_view text, const Mesh& same) {
  const Written written(text);
  const Mesh base = written.same() ? same : Mesh();
  std::vector<Axis> axes;
  for (const std::string_view axis : written.order() ? *written.order() : order_of(base)) {
    axes.push_back({std::string(axis), written.size(axis).value_or(base.size(axis))});
  }
  return Mesh(std::move(axes));
}

std::string to_text(const Mesh& mesh) {
  std::vector<std::string> items;
  for (const std::string_view axis : axis_names) {
    if (mesh.size(axis) > 1) items.push_back(fmt::format("{}={}", axis, mesh.size(axis)));
  }
  const Words order = order_of(mesh);
  if (!std::ranges::equal(order, axis_names)) {
    items.push_back(fmt::format("order={}", fmt::join(order, "-")));
  }
  if (items.empty()) items.emplace_back("tp=1");
  return fmt::format("{}", fmt::join(items, ","));
}

}  // namespace remesh
