#include "target_mesh.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common_options.hpp"
#include "remesh/adapters/open.hpp"
#include "remesh/core/error.hpp"
#include "remesh/models/mesh_file.hpp"
#include "remesh/schema/finding.hpp"
#include "remesh/schema/mesh_text.hpp"

namespace remesh {
namespace {

constexpr std::string_view like = "like:";

constexpr std::int64_t most_mesh_file_bytes = std::int64_t{1} << 20;

Mesh mesh_like(const std::string& path, const FileSystem& files) {
  StrictFindings findings;
  const auto other = open_reader(files, path, {}, findings);
  return parse_mesh("same", other->catalog().layout.mesh());
}

Mesh mesh_of(const std::string& text, std::string_view to, const Mesh& source,
             const FileSystem& files) {
  if (text.empty()) return parse_mesh("same", to == "hf" ? Mesh() : source);
  if (text.starts_with(like)) return mesh_like(text.substr(like.size()), files);
  return parse_mesh(text, source);
}

MeshFile mesh_file(const std::string& path, const FileSystem& files) {
  if (path.empty()) {
    throw Error(Errc::invalid_argument, "`--mesh @` names no file; say for example @mesh.toml");
  }
  return parse_mesh_file(read_text(files, path, most_mesh_file_bytes), path);
}

void set_rule(const std::string& rule, std::optional<Sharding>& sharding) {
  if (!sharding || sharding->zero == 0) {
    throw Error(Errc::invalid_argument,
                fmt::format("`--shard-rule {}` says how something is divided, but nothing is; say "
                            "what with `--zero 1`, `2` or `3`",
                            rule));
  }
  sharding->rule = rule == "chunk" ? ShardRule::chunk : ShardRule::flat;
  if (rule == "chunk") sharding->line.reset();
}

void check_has_mesh(std::string_view to, const MeshFile& said) {
  const bool divided = said.sharding && said.sharding->zero > 0;
  if (to != "hf" || (!said.stages && !divided)) return;
  throw Error(
      Errc::invalid_argument,
      fmt::format("cannot write hf with `{}`: a Hugging Face directory has no mesh, who loads "
                  "it splits it anew; leave the option out",
                  said.stages ? "--stages " + said.stages->text()
                              : fmt::format("--zero {}", said.sharding->zero)));
}

}  // namespace

void check_mesh_text(const std::string& text) {
  const std::vector<std::string>& formats = all_format_names();
  if (std::ranges::find(formats, text) != formats.end()) {
    throw Error(Errc::invalid_argument,
                fmt::format("`--mesh` takes a mesh; for a format say `--to {}`", text));
  }
}

Target target_of(const JobOptions& options, std::string_view to, const Mesh& source,
                 const FileSystem& files) {
  MeshFile said;
  said.mesh = options.mesh;
  if (options.mesh.starts_with('@')) said = mesh_file(options.mesh.substr(1), files);
  if (!options.stages.empty()) said.stages = StageRule::parse(options.stages);
  // What the lines are like stays as the file has it.
  if (options.zero) {
    if (!said.sharding) said.sharding.emplace();
    said.sharding->zero = *options.zero;
  }
  if (!options.shard_rule.empty()) set_rule(options.shard_rule, said.sharding);
  check_has_mesh(to, said);
  Target target(mesh_of(said.mesh, to, source, files));
  target.stages = std::move(said.stages);
  target.sharding = std::move(said.sharding);
  return target;
}

}  // namespace remesh
