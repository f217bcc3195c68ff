#include "target_mesh.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "common_options.hpp"
#include "remesh/adapters/open.hpp"
#include "remesh/core/error.hpp"
#include "remesh/schema/finding.hpp"
#include "remesh/schema/mesh_text.hpp"

namespace remesh {
namespace {

constexpr std::string_view like = "like:";

Mesh mesh_of(const std::string& path, const FileSystem& files) {
  StrictFindings findings;
  const auto other = open_reader(files, path, {}, findings);
  return parse_mesh("same", other->catalog().layout.mesh());
}

}  // namespace

void check_mesh_text(const std::string& text) {
  const std::vector<std::string>& formats = all_format_names();
  if (std::ranges::find(formats, text) != formats.end()) {
    throw Error(Errc::invalid_argument,
                fmt::format("`--mesh` takes a mesh; for a format say `--to {}`", text));
  }
  if (text.starts_with('@')) {
    throw Error(
        Errc::unsupported,
        fmt::format("cannot use `--mesh {}`: meshes from a file are not supported yet; write "
                    "the mesh itself, for example `--mesh tp=4,pp=2`",
                    text));
  }
}

Mesh target_mesh(const std::string& text, std::string_view to, const Mesh& source,
                 const FileSystem& files) {
  if (text.empty()) return parse_mesh("same", to == "hf" ? Mesh() : source);
  if (text.starts_with(like)) return mesh_of(text.substr(like.size()), files);
  return parse_mesh(text, source);
}

}  // namespace remesh
