#include "remesh/models/mesh_file.hpp"

#include <fmt/format.h>

#include "remesh/schema/mesh_text.hpp"
#include "toml_table.hpp"

namespace remesh {
namespace {

using detail::TomlFile;
using detail::TomlTable;

class MeshFileReader {
 public:
  explicit MeshFileReader(const TomlFile& file) : file_(file) {}

  MeshFile read() const {
    const TomlTable root(file_, file_.root(), "a mesh file",
                         {"mesh", "stages", "zero", "shard_rule", "line"});
    MeshFile read;
    read.mesh = read_mesh(root.need("mesh"));
    if (const auto* stages = root.find("stages")) read.stages = read_stages(*stages);
    if (const auto* zero = root.find("zero")) read.sharding = read_sharding(*zero, root);
    for (const char* key : {"shard_rule", "line"}) {
      if (const auto* node = root.find(key); node != nullptr && !read.sharding) {
        file_.fail(node->source(),
                   fmt::format("there is '{}', but no 'zero' that it is about", key));
      }
    }
    return read;
  }

 private:
  // A text, or a table that says the same.
  std::string read_mesh(const toml::node& node) const {
    std::string text;
    if (node.is_table()) {
      const TomlTable table(file_, *node.as_table(), "[mesh]",
                            {"tp", "cp", "dp", "pp", "ep", "etp", "vpp", "order"});
      for (const auto& [key, value] : *node.as_table()) {
        const std::string said = key == "order"
                                     ? detail::text_of(file_, value, "order")
                                     : std::to_string(detail::number_of(file_, value, key.str()));
        text += fmt::format("{}{}={}", text.empty() ? "" : ",", key.str(), said);
      }
      if (text.empty()) file_.fail(node.source(), "[mesh] has no axis");
    } else {
      text = detail::text_of(file_, node, "mesh");
    }
    // What depends on the source is seen later.
    if (!text.starts_with("same")) file_.at(node, [&] { return parse_mesh(text); });
    return text;
  }

  StageRule read_stages(const toml::node& node) const {
    std::string text;
    if (node.is_array()) {
      for (const toml::node& item : *node.as_array()) {
        const bool is_star = item.value<std::string_view>() == "*";
        text +=
            fmt::format("{}{}", text.empty() ? "" : ",",
                        is_star ? "*" : std::to_string(detail::number_of(file_, item, "stages")));
      }
    } else {
      text = detail::text_of(file_, node, "stages");
    }
    return file_.at(node, [&] { return StageRule::parse(text); });
  }

  Sharding read_sharding(const toml::node& zero, const TomlTable& root) const {
    Sharding sharding;
    const Index stage = detail::number_of(file_, zero, "zero");
    if (stage < 0 || stage > 3) {
      file_.fail(zero.source(), fmt::format("'zero' is {}, but 0, 1, 2 or 3 is expected", stage));
    }
    sharding.zero = static_cast<int>(stage);
    for (const char* key : {"shard_rule", "line"}) {
      if (const auto* node = root.find(key); node != nullptr && stage == 0) {
        file_.fail(node->source(),
                   fmt::format("there is '{}', but 'zero' is 0: nothing is divided", key));
      }
    }
    if (const auto* rule = root.find("shard_rule")) {
      const std::string text = detail::text_of(file_, *rule, "shard_rule");
      if (text != "chunk" && text != "flat") {
        file_.fail(rule->source(),
                   fmt::format("'shard_rule' is '{}', but chunk or flat is expected", text));
      }
      sharding.rule = text == "chunk" ? ShardRule::chunk : ShardRule::flat;
    }
    if (const auto* line = root.find("line")) {
      if (sharding.rule == ShardRule::chunk) {
        file_.fail(line->source(), "there is a 'line', but 'shard_rule' is chunk");
      }
      sharding.rule = ShardRule::flat;
      sharding.line = read_line(*line);
    }
    return sharding;
  }

  Flat read_line(const toml::node& node) const {
    const TomlTable table(file_, detail::table_of(file_, node, "line"), "[line]",
                          {"unit", "align", "bucket", "pad", "pad_each", "reversed"});
    Flat line;
    if (const auto* unit = table.find("unit")) {
      const std::string text = detail::text_of(file_, *unit, "unit");
      if (text != "all" && text != "layer" && text != "tensor") {
        file_.fail(unit->source(),
                   fmt::format("'unit' is '{}', but all, layer or tensor is expected", text));
      }
      line.unit = text == "all"     ? FlatUnit::all
                  : text == "layer" ? FlatUnit::layer
                                    : FlatUnit::tensor;
    }
    line.reversed = table.flag("reversed", false);
    line.align = number(table, "align", 1);
    line.bucket = number(table, "bucket", 0);
    line.pad = number(table, "pad", 1);
    line.pad_each = number(table, "pad_each", 1);
    return line;
  }

  // A count of elements; nothing less than what it is where it is left out.
  Index number(const TomlTable& table, std::string_view key, Index least) const {
    constexpr Index most = Index{1} << 40;
    const auto* const node = table.find(key);
    if (node == nullptr) return least;
    const Index value = detail::number_of(file_, *node, key);
    if (value < least || value > most) {
      file_.fail(node->source(), fmt::format("'{}' is {}, but a number from {} to {} is expected",
                                             key, value, least, most));
    }
    return value;
  }

  const TomlFile& file_;
};

}  // namespace

MeshFile parse_mesh_file(std::string_view toml, std::string_view where) {
  const TomlFile file(toml, where, "mesh file");
  return MeshFileReader(file).read();
}

}  // namespace remesh
