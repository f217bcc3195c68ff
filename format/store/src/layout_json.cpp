#include "layout_json.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "damage.hpp"

namespace remesh::native {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

// What is looped over for each tensor or rank must not come without bounds from a file.
constexpr Index most_ranks = Index{1} << 20;
constexpr std::size_t most_axes = 64;

template <typename Enum>
struct Named {
  std::string_view name;
  Enum value;
};

constexpr std::array rules{Named<SplitRule>{"balanced", SplitRule::balanced},
                           Named<SplitRule>{"chunk", SplitRule::chunk},
                           Named<SplitRule>{"sizes", SplitRule::sizes}};

constexpr std::array targets{Named<PinTo>{"coordinates", PinTo::coordinates},
                             Named<PinTo>{"layer", PinTo::layer},
                             Named<PinTo>{"first", PinTo::first},
                             Named<PinTo>{"last", PinTo::last},
                             Named<PinTo>{"ends", PinTo::ends},
                             Named<PinTo>{"expert", PinTo::expert}};

constexpr std::array beyonds{Named<Beyond>{"refuse", Beyond::refuse},
                             Named<Beyond>{"share", Beyond::share},
                             Named<Beyond>{"divide", Beyond::divide}};

constexpr std::array units{Named<FlatUnit>{"all", FlatUnit::all},
                           Named<FlatUnit>{"layer", FlatUnit::layer},
                           Named<FlatUnit>{"tensor", FlatUnit::tensor}};

template <typename Enum, std::size_t n>
std::string_view name_of(Enum value, const std::array<Named<Enum>, n>& table) {
  return std::ranges::find(table, value, &Named<Enum>::value)->name;
}

void check_count(std::size_t count, std::size_t most_allowed, const char* what) {
  if (count <= most_allowed) return;
  damaged(fmt::format("it has {} {}, but at most {} are allowed", count, what, most_allowed),
          "RM605");
}

Json json_of(const Split& split) {
  Json parts = Json::array();
  for (const Part& part : split.parts) {
    parts.push_back(
        {{"beyond", name_of(part.beyond, beyonds)}, {"groups", part.groups}, {"size", part.size}});
  }
  return {{"beyond", name_of(split.beyond, beyonds)},
          {"block", split.block},
          {"dim", split.dim},
          {"groups", split.groups},
          {"over", split.over},
          {"parts", std::move(parts)},
          {"rule", name_of(split.rule, rules)},
          {"sizes", split.sizes},
          {"unit", split.unit}};
}

Json json_of(const Flat& flat) {
  return {{"align", flat.align},       {"bucket", flat.bucket},
          {"name", flat.name},         {"over", flat.over},
          {"pad", flat.pad},           {"pad_each", flat.pad_each},
          {"reversed", flat.reversed}, {"unit", name_of(flat.unit, units)}};
}

Json json_of(const Placement& placement) {
  Json splits = Json::array();
  for (const Split& split : placement.splits) splits.push_back(json_of(split));
  Json pins = Json::array();
  for (const Pin& pin : placement.pins) {
    pins.push_back({{"axis", pin.axis},
                    {"coordinates", pin.coordinates},
                    {"experts", pin.experts},
                    {"to", name_of(pin.to, targets)}});
  }
  Json scaled = Json::array();
  for (const Scaled& one : placement.scaled) {
    scaled.push_back({{"block", one.block}, {"dim", one.dim}, {"of", one.of}});
  }
  return {{"flat", placement.flat ? json_of(*placement.flat) : Json(nullptr)},
          {"pins", std::move(pins)},
          {"scaled", std::move(scaled)},
          {"splits", std::move(splits)}};
}

template <typename Enum, std::size_t n>
Enum parse_name(const Members& members, std::string_view key,
                const std::array<Named<Enum>, n>& table) {
  const auto found = std::ranges::find(table, members.text(key), &Named<Enum>::name);
  if (found == table.end()) {
    damaged(fmt::format("'{}' of {} is {:?}, which is unknown", key, members.where(),
                        members.text(key)),
            "RM103");
  }
  return found->value;
}

Part parse_part(const Json& value) {
  const Members members(value, "a part", {"beyond", "groups", "size"});
  return {.size = members.integer("size", 0, most_run),
          .groups = members.integer("groups", 0, most),
          .beyond = parse_name(members, "beyond", beyonds)};
}

Split parse_split(const Json& value) {
  const Members members(
      value, "a split",
      {"beyond", "block", "dim", "groups", "over", "parts", "rule", "sizes", "unit"});
  check_count(members.array("over").size(), most_steps, "axes of one split");
  check_count(members.array("parts").size(), most_steps, "parts of one split");
  check_count(members.array("sizes").size(), most_listed, "listed sizes");
  Split split{.dim = static_cast<int>(members.integer("dim", 0, max_ndim - 1)),
              .over = members.texts("over"),
              .rule = parse_name(members, "rule", rules),
              .sizes = members.integers("sizes", 0, most),
              .groups = members.integer("groups", 0, most),
              .beyond = parse_name(members, "beyond", beyonds),
              .block = members.integer("block", 1, most_block),
              .parts = {},
              .unit = members.text("unit")};
  for (const Json& part : members.array("parts")) split.parts.push_back(parse_part(part));
  return split;
}

Scaled parse_scaled(const Json& value) {
  const Members members(value, "a dim in blocks", {"block", "dim", "of"});
  return {.dim = static_cast<int>(members.integer("dim", 0, max_ndim - 1)),
          .block = members.integer("block", 1, most_block),
          .of = members.integer("of", 0, most_run)};
}

std::optional<Flat> parse_flat(const Json& value) {
  if (value.is_null()) return std::nullopt;
  const Members members(value, "a line",
                        {"align", "bucket", "name", "over", "pad", "pad_each", "reversed", "unit"});
  check_count(members.array("over").size(), most_steps, "axes of one line");
  return Flat{.over = members.texts("over"),
              .unit = parse_name(members, "unit", units),
              .name = members.text("name"),
              .reversed = members.boolean("reversed"),
              .align = members.integer("align", 1, most_padding),
              .bucket = members.integer("bucket", 0, most_run),
              .pad = members.integer("pad", 1, most_padding),
              .pad_each = members.integer("pad_each", 1, most_padding)};
}

Pin parse_pin(const Json& value) {
  const Members members(value, "a pin", {"axis", "coordinates", "experts", "to"});
  Pin pin{.axis = members.text("axis"),
          .to = parse_name(members, "to", targets),
          .coordinates = members.integers("coordinates", 0, most),
          .experts = members.integer("experts", 0, std::numeric_limits<std::int32_t>::max())};
  if (!std::ranges::is_sorted(pin.coordinates)) {
    damaged("the coordinates of a pin are not in order", "RM103");
  }
  return pin;
}

Stages parse_stages(const Members& members) {
  Stages stages{members.integers("stages", 0, std::numeric_limits<std::int32_t>::max())};
  check_count(stages.layers.size(), most_stages, "stages");
  Index left = std::numeric_limits<std::int32_t>::max();
  for (const Index layers : stages.layers) {
    left -= layers;
    if (left < 0) damaged("its stages have too many layers", "RM605");
  }
  return stages;
}

}  // namespace

Json json_of(const Layout& layout) {
  Json placements = Json::array();
  for (const Placement& placement : layout.placements()) placements.push_back(json_of(placement));
  return {{"placements", std::move(placements)}, {"stages", layout.stages().layers}};
}

Json json_of(const Mesh& mesh) {
  const auto grid = [](std::span<const Axis> axes) {
    Json sizes = Json::object();
    Json order = Json::array();
    for (const Axis& axis : axes) {
      sizes[axis.name] = axis.size;
      order.push_back(axis.name);
    }
    return Json{{"axes", std::move(sizes)}, {"order", std::move(order)}};
  };
  Json json = grid(mesh.axes());
  json["experts"] = grid(mesh.expert_axes());
  json["virtual_stages"] = mesh.virtual_stages();
  return json;
}

namespace {

std::vector<Axis> parse_grid(const Members& members) {
  const auto order = members.texts("order");
  check_count(order.size(), most_axes, "axes");
  const Json& sizes = members.at("axes");
  if (!sizes.is_object() || sizes.size() != order.size()) {
    damaged("'order' of 'mesh' does not list its axes", "RM103");
  }
  std::vector<Axis> axes;
  for (const std::string& name : order) {
    const auto size = sizes.find(name);
    if (size == sizes.end() || !size->is_number_integer()) {
      damaged(fmt::format("the axis {:?} of 'mesh' has no size", name), "RM103");
    }
    axes.push_back({name, size->get<std::int64_t>()});
  }
  return axes;
}

}  // namespace

Mesh parse_mesh(const Json& value) {
  const Members members(value, "'mesh'", {"axes", "experts", "order", "virtual_stages"});
  const Members experts(members.at("experts"), "'experts' of 'mesh'", {"axes", "order"});
  Mesh mesh(parse_grid(members), parse_grid(experts),
            members.integer("virtual_stages", 1, static_cast<std::int64_t>(most_stages)));
  // Layouts are worked out rank by rank: a small file must not ask for more of that than a large
  // job.
  if (mesh.num_ranks() > most_ranks) {
    damaged(
        fmt::format("its mesh has {} ranks, but at most {} are read", mesh.num_ranks(), most_ranks),
        "RM605");
  }
  return mesh;
}

Layout parse_layout(const Json& value, Mesh mesh, std::vector<Placed> placed) {
  const Members members(value, "'layout'", {"placements", "stages"});
  std::vector<Placement> placements;
  for (const Json& each : members.array("placements")) {
    const Members placement(each, "a placement", {"flat", "pins", "scaled", "splits"});
    check_count(placement.array("splits").size(), most_steps, "splits of one placement");
    check_count(placement.array("pins").size(), most_steps, "pins of one placement");
    placements.emplace_back();
    for (const Json& split : placement.array("splits")) {
      placements.back().splits.push_back(parse_split(split));
    }
    for (const Json& pin : placement.array("pins")) {
      placements.back().pins.push_back(parse_pin(pin));
    }
    placements.back().flat = parse_flat(placement.at("flat"));
    check_count(placement.array("scaled").size(), max_ndim, "dims in blocks");
    for (const Json& scaled : placement.array("scaled")) {
      placements.back().scaled.push_back(parse_scaled(scaled));
    }
  }
  return {std::move(mesh), std::move(placements), std::move(placed), parse_stages(members)};
}

}  // namespace remesh::native
