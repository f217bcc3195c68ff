#include "inspect_report.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

#include "finding_text.hpp"
#include "remesh/core/budget.hpp"
#include "remesh/schema/catalog.hpp"
#include "remesh/store/seal.hpp"
#include "text.hpp"

namespace remesh {
namespace {

struct Share {
  std::int64_t tensors = 0;
  std::int64_t bytes = 0;
};

// By dtype, the widest first.
std::map<DType, Share, std::greater<>> shares_of(const Catalog& catalog) {
  std::map<DType, Share, std::greater<>> shares;
  for (const TensorDesc& tensor : catalog.tensors) {
    Share& share = shares[tensor.dtype];
    ++share.tensors;
    share.bytes += num_bytes(tensor);
  }
  return shares;
}

std::int64_t file_bytes(const ExtentMap& extents) {
  const auto files = extents.files();
  return std::accumulate(files.begin(), files.end(), std::int64_t{0},
                         [](std::int64_t sum, const auto& file) { return sum + file.size_bytes; });
}

// Whether the format has a commit marker; readers open only what has it.
bool has_marker(const Catalog& catalog) { return catalog.format == "remesh"; }

std::string dtypes_text(const Catalog& catalog) {
  std::vector<std::string> parts;
  for (const auto& [dtype, share] : shares_of(catalog)) {
    parts.push_back(fmt::format("{} {} ({})", to_string(dtype), counted(share.tensors, "tensor"),
                                format_bytes(share.bytes)));
  }
  return joined(parts);
}

std::string side_text(const Catalog& catalog) {
  std::vector<std::string> parts;
  for (const SideFile& side : catalog.side) {
    parts.push_back(fmt::format("{} ({})", escaped(side.name), format_bytes(side.size_bytes)));
  }
  return parts.empty() ? "none" : joined(parts);
}

std::string layout_text(const Catalog& catalog) {
  const Layout& layout = catalog.layout;
  if (layout.stages().layers.empty()) return "unknown";
  std::vector<std::string> stages;
  for (const Index layers : layout.stages().layers) stages.push_back(std::to_string(layers));
  return fmt::format("{}, by pipeline stage: {}", counted(layout.stages().num_layers(), "layer"),
                     joined(stages));
}

// Of what is packed alone: "zstd, 596.1 KB in 415.0 KB".
std::string packed_text(const ExtentMap& extents) {
  std::int64_t whole = 0;
  std::int64_t stored = 0;
  for (const Extent& extent : extents.extents()) {
    if (is_chunked(extent)) whole += extent.length_bytes;
  }
  for (const Frame& frame : extents.all_frames()) stored += frame.length_bytes;
  return fmt::format("zstd, {} in {}", format_bytes(whole), format_bytes(stored));
}

const char* digests_text(const Catalog& catalog) {
  if (catalog.digests.empty()) return "none recorded";
  return is_sealed(catalog) ? "sealed, for every tensor" : "recorded for every tensor";
}

Table summary_table(const Inspected& inspected) {
  const Catalog& catalog = inspected.reader.catalog();
  const ExtentMap& extents = inspected.reader.extents();
  Table table;
  table.add({"format", fmt::format("{}, {}", catalog.format,
                                   has_marker(catalog) ? "committed" : "has no commit marker")});
  table.add({"mesh", describe(catalog.layout.mesh())});
  table.add({"layers", layout_text(catalog)});
  table.add({"tensors", fmt::format("{}, {}", std::ssize(catalog.tensors),
                                    format_bytes(payload_bytes(catalog)))});
  table.add({"dtypes", dtypes_text(catalog)});
  table.add({"files", fmt::format("{}, {}", std::ssize(extents.files()),
                                  format_bytes(file_bytes(extents)))});
  if (!extents.all_frames().empty()) table.add({"packed", packed_text(extents)});
  table.add({"side files", side_text(catalog)});
  table.add({"digests", digests_text(catalog)});
  if (!catalog.save_id.empty()) table.add({"save", escaped(catalog.save_id)});
  if (!catalog.run_id.empty()) table.add({"run", escaped(catalog.run_id)});
  return table;
}

std::string placement_text(const Catalog& catalog, std::size_t tensor) {
  if (tensor >= catalog.layout.placed().size()) return "replicated";
  return to_string(catalog.layout.placement(tensor));
}

Table tensor_table(const Inspected& inspected) {
  const Catalog& catalog = inspected.reader.catalog();
  Table table;
  table.add({"name", "dtype", "shape", "bytes", "placement", "digest"});
  for (const std::size_t i : inspected.listed) {
    const TensorDesc& tensor = catalog.tensors[i];
    table.add({escaped(tensor.name), std::string(to_string(tensor.dtype)),
               format_shape(tensor.extent), std::to_string(num_bytes(tensor)),
               placement_text(catalog, i),
               catalog.digests.empty() ? "-" : to_string(catalog.digests[i])});
  }
  return table;
}

Json dtypes_json(const Catalog& catalog) {
  Json all = Json::array();
  for (const auto& [dtype, share] : shares_of(catalog)) {
    all.push_back(
        {{"dtype", to_string(dtype)}, {"tensors", share.tensors}, {"bytes", share.bytes}});
  }
  return all;
}

Json side_json(const Catalog& catalog) {
  Json all = Json::array();
  for (const SideFile& side : catalog.side) {
    all.push_back(
        {{"name", side.name}, {"size_bytes", side.size_bytes}, {"digest", to_string(side.digest)}});
  }
  return all;
}

Json listed_json(const Inspected& inspected) {
  const Catalog& catalog = inspected.reader.catalog();
  Json all = Json::array();
  for (const std::size_t i : inspected.listed) {
    const TensorDesc& tensor = catalog.tensors[i];
    const bool recorded = !catalog.digests.empty();
    all.push_back({{"name", tensor.name},
                   {"dtype", to_string(tensor.dtype)},
                   {"shape", shape_json(tensor.extent)},
                   {"bytes", num_bytes(tensor)},
                   {"placement", placement_text(catalog, i)},
                   {"digest", recorded ? Json(to_string(catalog.digests[i])) : Json(nullptr)}});
  }
  return all;
}

}  // namespace

void print_inspected(const Inspected& inspected, Output& out) {
  out.line(out.strong(escaped(inspected.path)));
  for (const std::string& line : summary_table(inspected).lines()) out.line(line);
  print_findings(inspected.findings, out);
  if (!inspected.listed.empty()) {
    out.line();
    for (const std::string& line : tensor_table(inspected).lines()) out.line(line);
  }
  out.talk(fmt::format("hint: `remesh verify {}` checks every byte", escaped(inspected.path)));
}

Json inspected_json(const Inspected& inspected) {
  const Catalog& catalog = inspected.reader.catalog();
  const ExtentMap& extents = inspected.reader.extents();
  Json document = new_document("inspect");
  document["path"] = inspected.path;
  document["format"] = catalog.format;
  document["committed"] = has_marker(catalog) ? Json(true) : Json(nullptr);
  document["mesh"] = json_of(catalog.layout.mesh());
  document["layers_by_stage"] = catalog.layout.stages().layers;
  document["tensors"] = std::ssize(catalog.tensors);
  document["payload_bytes"] = payload_bytes(catalog);
  document["dtypes"] = dtypes_json(catalog);
  document["files"] = std::ssize(extents.files());
  document["file_bytes"] = file_bytes(extents);
  document["side_files"] = side_json(catalog);
  document["digests_recorded"] = !catalog.digests.empty();
  document["sealed"] = is_sealed(catalog);
  document["save_id"] = text_or_null(catalog.save_id);
  document["run_id"] = text_or_null(catalog.run_id);
  document["findings"] = json_of(inspected.findings);
  document["listed"] = listed_json(inspected);
  return document;
}

}  // namespace remesh
