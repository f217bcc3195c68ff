#include "remesh/schema/mesh_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
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
// The same with ep, which has its place among them where the experts have a grid of their own.
constexpr std::array<std::string_view, 5> ordered_names{"tp", "cp", "ep", "dp", "pp"};
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

  [[noreturn]] void fail(std::string_view why) const {
    throw Error(Errc::invalid_argument, fmt::format("cannot read mesh {}: {}", quoted(text_), why));
  }

  bool same() const noexcept { return same_; }
  const std::optional<Words>& order() const noexcept { return order_; }

  std::optional<Index> size(std::string_view axis) const {
    const auto found = std::ranges::find(sizes_, axis, &Axis::name);
    return found == sizes_.end() ? std::nullopt : std::optional(found->size);
  }

 private:
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
    if (hint.empty()) hint = "; the axes are tp, cp, dp, pp, ep and etp";
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
    sizes_.push_back({std::string(key), number});
  }

  void take_order(std::string_view value) {
    if (order_) fail("order is given twice");
    order_.emplace();
    for (const std::string_view axis : split_at(value, '-')) {
      if (!is_one_of(ordered_names, axis)) {
        fail(fmt::format("order {} names the unknown axis {}{}", quoted(value), quoted(axis),
                         did_you_mean(axis, ordered_names)));
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

// Puts what is absent of `all` after its neighbour there.
void complete(Words& order, std::span<const std::string_view> all) {
  auto after = order.begin();
  for (const std::string_view axis : all) {
    const auto found = std::ranges::find(order, axis);
    after = std::next(found == order.end() ? order.insert(after, axis) : found);
  }
}

// The dense grid's order, with the axes that it lacks.
Words dense_order_of(const Mesh& mesh) {
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
  complete(order, axis_names);
  return order;
}

// The order of the experts' grid that an order with ep stands for.
Words expert_order(const Words& order) {
  Words experts;
  for (const std::string_view axis : order) {
    if (axis == "cp") continue;
    experts.push_back(axis == "tp" ? "etp" : axis == "dp" ? "edp" : axis);
  }
  return experts;
}

// One order for both grids: the dense one, with ep where the experts' grid has it.
Words order_of(const Mesh& mesh) {
  constexpr std::array<std::string_view, 4> expert_names{"etp", "ep", "edp", "pp"};
  Words order = dense_order_of(mesh);
  if (mesh.expert_axes().empty()) return order;
  Words wanted;
  for (const Axis& axis : mesh.expert_axes()) wanted.emplace_back(axis.name);
  complete(wanted, expert_names);

  // The place that it has by default, if that will do.
  Words usual = order;
  complete(usual, ordered_names);
  if (expert_order(usual) == wanted) return usual;
  for (std::size_t at = 0; at <= order.size(); ++at) {
    Words tried = order;
    tried.insert(tried.begin() + static_cast<std::ptrdiff_t>(at), "ep");
    if (expert_order(tried) == wanted) return tried;
  }
  throw Error(Errc::unsupported,
              fmt::format("cannot write mesh {} as text: no one order stands for both grids",
                          describe(mesh)));
}

// What of an axis would do instead of what was asked, on either side.
std::string nearest_divisors(std::string_view axis, Index ranks, Index asked) {
  constexpr Index farthest = Index{1} << 16;  // beyond any real mesh
  std::vector<std::string> texts;
  const Index highest = std::min(asked - 1, ranks);
  for (Index size = highest; size > std::max(Index{0}, highest - farthest); --size) {
    if (ranks % size != 0) continue;
    texts.push_back(fmt::format("{}={}", axis, size));
    break;
  }
  for (Index size = asked + 1; size <= std::min(ranks, asked + farthest); ++size) {
    if (ranks % size != 0) continue;
    texts.push_back(fmt::format("{}={}", axis, size));
    break;
  }
  if (texts.empty()) return {};
  return fmt::format("; the nearest legal value{} {}", texts.size() == 1 ? " is" : "s are",
                     fmt::join(texts, " and "));
}

// The grid of the experts that was asked for, if any was: whatever the dense grid has, but pp, is
// dealt anew.
std::vector<Axis> expert_grid(const Written& written, const Mesh& base, const Words& order,
                              const Mesh& dense) {
  const bool asked = written.size("ep") || written.size("etp");
  const bool has_grid = !base.expert_axes().empty();
  if (!asked && !has_grid) return {};
  const auto size_of = [&](std::string_view axis) {
    return written.size(axis).value_or(has_grid ? base.size(axis) : 1);
  };
  const Index ep = size_of("ep");
  const Index etp = size_of("etp");
  const Index ranks = dense.size("tp") * dense.size("cp") * dense.size("dp");
  if (ep > ranks || etp > ranks || ranks % (etp * ep) != 0) {
    written.fail(
        fmt::format("the experts share the {} ranks of tp*cp*dp, which etp {} * ep {} does "
                    "not divide{}",
                    ranks, etp, ep,
                    ranks % etp == 0 ? nearest_divisors("ep", ranks / etp, ep)
                                     : nearest_divisors("etp", ranks, etp)));
  }
  Words full = order;
  complete(full, ordered_names);
  const std::array<std::pair<std::string_view, Index>, 4> sizes{
      {{"etp", etp}, {"ep", ep}, {"edp", ranks / (etp * ep)}, {"pp", dense.size("pp")}}};
  std::vector<Axis> axes;
  for (const std::string_view axis : expert_order(full)) {
    const auto* const size = std::ranges::find(sizes, axis, &decltype(sizes)::value_type::first);
    axes.push_back({std::string(axis), size->second});
  }
  return axes;
}

}  // namespace

Mesh parse_mesh(std::string_view text, const Mesh& same) {
  const Written written(text);
  const Mesh base = written.same() ? same : Mesh();
  const Words order = written.order() ? *written.order() : order_of(base);
  std::vector<Axis> axes;
  for (const std::string_view axis : order) {
    if (axis == "ep") continue;
    axes.push_back({std::string(axis), written.size(axis).value_or(base.size(axis))});
  }
  const Mesh dense(axes);
  std::vector<Axis> experts = expert_grid(written, base, order, dense);
  const Index kept = dense.size("pp") > 1 ? base.virtual_stages() : 1;
  return Mesh(std::move(axes), std::move(experts), written.size("vpp").value_or(kept));
}

std::string to_text(const Mesh& mesh) {
  std::vector<std::string> items;
  for (const std::string_view axis : axis_names) {
    if (mesh.size(axis) > 1) items.push_back(fmt::format("{}={}", axis, mesh.size(axis)));
  }
  const bool experts = !mesh.expert_axes().empty();
  if (experts) items.push_back(fmt::format("ep={}", mesh.size("ep")));
  if (mesh.size("etp") > 1 && experts) items.push_back(fmt::format("etp={}", mesh.size("etp")));
  if (mesh.virtual_stages() > 1) items.push_back(fmt::format("vpp={}", mesh.virtual_stages()));
  const Words order = order_of(mesh);
  const bool usual =
      experts ? std::ranges::equal(order, ordered_names) : std::ranges::equal(order, axis_names);
  if (!usual) items.push_back(fmt::format("order={}", fmt::join(order, "-")));
  if (items.empty()) items.emplace_back("tp=1");
  return fmt::format("{}", fmt::join(items, ","));
}

}  // namespace remesh
