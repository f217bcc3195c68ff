#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "finding_text.hpp"
#include "inspect_report.hpp"
#include "remesh/adapters/open.hpp"
#include "remesh/adapters/run.hpp"
#include "remesh/core/budget.hpp"
#include "remesh/core/error.hpp"
#include "run_report.hpp"
#include "text.hpp"

namespace remesh {
namespace {

// What is kept of a checkpoint whose header could be read.
struct Summary {
  Mesh mesh;
  std::int64_t tensors = 0;
  std::int64_t payload_bytes = 0;
};

/// One checkpoint of a directory.
struct Listed {
  std::size_t entry = 0;  ///< its number in the run
  std::string format;     ///< empty where none recognises it
  std::optional<Summary> summary;
  std::optional<bool>
      committed;        ///< unset where the format has no marker, or nothing could be said
  std::string id;       ///< of the first error
  std::string problem;  ///< its message
};

// Where a save was begun, and nothing else.
bool is_empty_directory(const FileSystem& files, const FileSystem::Path& path) {
  try {
    const auto inside = files.look(path / ".");  // follows a link
    return inside && inside->kind == EntryKind::directory && files.list(path / ".").empty();
  } catch (const Error&) {
    return false;
  }
}

// What cannot be looked into is listed with the reason; the others are listed all the same.
void open_listed(const FileSystem& files, const FileSystem::Path& path, bool is_meant,
                 Listed& listed) {
  try {
    listed.format = detect_format(files, path).value_or("");
    if (listed.format.empty() && !is_meant) return;
    StrictFindings findings;
    const auto reader = open_reader(files, path, listed.format, findings);
    const Catalog& catalog = reader->catalog();
    listed.summary =
        Summary{catalog.layout.mesh(), std::ssize(catalog.tensors), payload_bytes(catalog)};
    if (catalog.format == "remesh") listed.committed = true;
  } catch (const Error& error) {
    listed.id = error.id();
    listed.problem = error.what();
    // What holds something of an unknown format may well be whole.
    const bool is_empty = listed.id == "RM101" && is_empty_directory(files, path);
    if (is_empty || listed.id == "RM105") listed.committed = false;
  }
}

// Nothing where it turns out to be no checkpoint, and was not meant as one.
std::optional<Listed> look_at(const FileSystem& files, const FileSystem::Path& directory,
                              const TrainingRun& run, std::size_t entry) {
  const RunEntry& found = run.entries[entry];
  Listed listed{entry, {}, {}, {}, {}, {}};
  if (found.is_leftover) {
    const Finding finding = unfinished(found);
    listed.committed = false;
    listed.id = finding.id;
    listed.problem = finding.message;
    return listed;
  }
  const FileSystem::Path path = directory / found.name;
  open_listed(files, path, found.is_meant, listed);
  const bool is_other = listed.format.empty() && !found.is_meant;
  return is_other ? std::nullopt : std::optional(std::move(listed));
}

std::vector<Listed> look_at_all(const FileSystem& files, const FileSystem::Path& directory,
                                const TrainingRun& run) {
  std::vector<Listed> all;
  all.reserve(run.entries.size());
  for (std::size_t entry = 0; entry < run.entries.size(); ++entry) {
    if (auto listed = look_at(files, directory, run, entry)) all.push_back(*std::move(listed));
  }
  return all;
}

// As far as the headers tell.
std::optional<std::size_t> newest_readable(const TrainingRun& run, const std::vector<Listed>& all) {
  std::vector<bool> is_readable(run.entries.size());
  for (const Listed& listed : all) is_readable[listed.entry] = listed.summary.has_value();
  const std::vector<std::size_t> order = newest_first(run);
  const auto newest =
      std::ranges::find_if(order, [&](std::size_t entry) { return is_readable[entry]; });
  return newest == order.end() ? std::nullopt : std::optional(*newest);
}

std::string state_text(const Listed& listed) {
  if (listed.summary) return listed.committed ? "committed" : "no marker";
  return fmt::format("{}: {}{}{}", listed.committed ? "not committed" : "unreadable", listed.id,
                     listed.id.empty() ? "" : ": ", escaped(listed.problem));
}

std::vector<std::string> row_of(const TrainingRun& run, const Listed& listed) {
  const RunEntry& entry = run.entries[listed.entry];
  std::vector<std::string> row{step_text(entry.step, "-"), escaped(entry.name),
                               listed.format.empty() ? "-" : listed.format};
  if (listed.summary) {
    const auto& [mesh, tensors, bytes] = *listed.summary;
    row.insert(row.end(), {describe(mesh), counted(tensors, "tensor"), format_bytes(bytes)});
  }
  row.push_back(state_text(listed));
  return row;
}

Json json_of_listed(const TrainingRun& run, const Listed& listed) {
  const RunEntry& entry = run.entries[listed.entry];
  const auto& summary = listed.summary;
  return {{"name", entry.name},
          {"step", step_json(entry.step)},
          {"leftover", entry.is_leftover},
          {"format", text_or_null(listed.format)},
          {"mesh", summary ? json_of(summary->mesh) : Json(nullptr)},
          {"tensors", summary ? Json(summary->tensors) : Json(nullptr)},
          {"payload_bytes", summary ? Json(summary->payload_bytes) : Json(nullptr)},
          {"committed", listed.committed ? Json(*listed.committed) : Json(nullptr)},
          {"problem_id", text_or_null(listed.id)},
          {"problem", text_or_null(listed.problem)}};
}

void print_pointers(const TrainingRun& run, Output& out) {
  Table table;
  for (const RunPointer& pointer : run.pointers) {
    table.add({escaped(pointer.name),
               pointer.target.empty() ? "names nothing" : "names " + escaped(pointer.target)});
  }
  for (const std::string& line : table.lines("  ")) out.line(line);
}

}  // namespace

bool list_checkpoints(const std::string& directory, Session& session) {
  const TrainingRun run = read_run(session.files, directory);
  const std::vector<Listed> all = look_at_all(session.files, directory, run);
  const bool holds_any = std::ranges::any_of(all, [&](const Listed& listed) {
    return !listed.format.empty() || run.entries[listed.entry].is_leftover;
  });
  if (!holds_any) return false;

  Output& out = session.out;
  out.line(fmt::format("{}  {}", out.strong(escaped(directory)),
                       counted(std::ssize(all), "checkpoint")));
  Table table;
  Json checkpoints = Json::array();
  for (const Listed& listed : all) {
    table.add(row_of(run, listed));
    checkpoints.push_back(json_of_listed(run, listed));
  }
  for (const std::string& line : table.lines("  ")) out.line(line);
  print_pointers(run, out);
  const std::vector<Finding> findings = check_pointers(run, newest_readable(run, all));
  print_findings(findings, out);

  Json document = new_document("inspect");
  document["path"] = directory;
  document["checkpoints"] = std::move(checkpoints);
  document["pointers"] = json_of(std::span(run.pointers));
  document["findings"] = json_of(findings);
  out.document(document);
  return true;
}

}  // namespace remesh
