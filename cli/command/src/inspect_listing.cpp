#include <string>
#include <vector>

#include <fmt/format.h>

#include "inspect_report.hpp"
#include "remesh/adapters/open.hpp"
#include "remesh/core/budget.hpp"
#include "remesh/core/error.hpp"
#include "text.hpp"

namespace remesh {
namespace {

/// One checkpoint of a directory.
struct Listed {
  std::string name;
  std::string format;
  std::unique_ptr<Reader> reader;  ///< null where it could not be opened
  std::string problem;             ///< id and message of the first error
};

Listed open_listed(const FileSystem& files, const FileSystem::Path& path, std::string format) {
  Listed listed{path.filename().string(), std::move(format), nullptr, {}};
  try {
    StrictFindings findings;
    listed.reader = open_reader(files, path, listed.format, findings);
  } catch (const Error& error) {
    listed.problem =
        fmt::format("{}{}{}", error.id(), error.id().empty() ? "" : ": ", error.what());
  }
  return listed;
}

std::vector<Listed> open_all(const FileSystem& files, const FileSystem::Path& directory) {
  std::vector<Listed> all;
  for (const Entry& entry : files.list(directory)) {
    if (entry.kind != EntryKind::directory || entry.name.starts_with('.')) continue;
    const FileSystem::Path path = directory / entry.name;
    if (auto format = detect_format(files, path)) {
      all.push_back(open_listed(files, path, *std::move(format)));
    }
  }
  return all;
}

std::vector<std::string> row_of(const Listed& listed) {
  if (!listed.reader) {
    return {escaped(listed.name), listed.format, "unreadable: " + escaped(listed.problem)};
  }
  const Catalog& catalog = listed.reader->catalog();
  return {escaped(listed.name), listed.format, describe(catalog.layout.mesh()),
          counted(std::ssize(catalog.tensors), "tensor"), format_bytes(payload_bytes(catalog))};
}

Json json_of_listed(const Listed& listed) {
  Json one{{"name", listed.name}, {"format", listed.format}};
  const Catalog* catalog = listed.reader ? &listed.reader->catalog() : nullptr;
  one["mesh"] = catalog ? json_of(catalog->layout.mesh()) : Json(nullptr);
  one["tensors"] = catalog ? Json(std::ssize(catalog->tensors)) : Json(nullptr);
  one["payload_bytes"] = catalog ? Json(payload_bytes(*catalog)) : Json(nullptr);
  one["problem"] = text_or_null(listed.problem);
  return one;
}

}  // namespace

bool list_checkpoints(const std::string& directory, Session& session) {
  const std::vector<Listed> all = open_all(session.files, directory);
  if (all.empty()) return false;

  Output& out = session.out;
  out.line(fmt::format("{}  {}", out.strong(escaped(directory)),
                       counted(std::ssize(all), "checkpoint")));
  Table table;
  Json checkpoints = Json::array();
  for (const Listed& listed : all) {
    table.add(row_of(listed));
    checkpoints.push_back(json_of_listed(listed));
  }
  for (const std::string& line : table.lines("  ")) out.line(line);

  Json document = new_document("inspect");
  document["path"] = directory;
  document["checkpoints"] = std::move(checkpoints);
  out.document(document);
  return true;
}

}  // namespace remesh
