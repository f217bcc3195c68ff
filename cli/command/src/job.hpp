#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "job_options.hpp"
#include "remesh/execute/selection.hpp"
#include "remesh/execute/transfer.hpp"
#include "remesh/models/model_map.hpp"
#include "remesh/schema/catalog.hpp"
#include "remesh/schema/finding.hpp"
#include "remesh/schema/target.hpp"
#include "remesh/store/reader.hpp"
#include "remesh/store/writer.hpp"
#include "session.hpp"

/// @file
/// What `plan`, `reshard` and `convert` have in common: a checkpoint, and what it is to become.

namespace remesh {

enum class JobKind {
  reshard,  ///< the framework stays, the mesh changes
  convert,  ///< the framework changes, and the mesh too if asked
};

/// A checkpoint that was opened, and what it is to become.
struct Job {
  JobKind kind = JobKind::convert;
  std::unique_ptr<Reader> source;
  std::vector<Finding> findings;      ///< of opening it; none is an error
  std::string config;                 ///< the text of config.json; empty where there is none
  std::optional<ModelMap> rules;      ///< from --rules
  const ModelMap* shipped = nullptr;  ///< the one that ships for this model, where one is wanted
  std::string to;                     ///< the target's format
  Target target;                      ///< how it is to lie
  Selection selection;                ///< what of the source is wanted, and as what

  /// The map to place tensors with; null: keep the placements.
  const ModelMap* map() const noexcept { return rules ? &*rules : shipped; }
};

/// Checks the options against each other and opens the source. No payload is read.
/// Throws Error(invalid_argument) for options that do not go together, and as open_reader,
/// ModelMap::parse and parse_mesh do.
Job open_job(JobKind kind, const JobOptions& options, FileSystem& files);

/// What the writer is told, but for the name of its temporary directory. Throws
/// Error(invalid_argument) where --shard-size or --compress cannot be read.
WriterOptions writer_options(const JobOptions& options);

/// What is going to be written, on the wanted mesh, and what is left out.
struct Wanted {
  Catalog catalog;
  Left left;
};

/// All of the source on the wanted mesh. Throws as resharded() and converted() do:
/// Error(invalid_argument) where the mesh is impossible for the model.
Catalog placed_catalog(const Job& job);

/// Throws as placed_catalog() and apply() do.
Wanted wanted_of(const Job& job);

/// "tp=2,... (4 ranks, ...)  ->  tp=4,... (4 ranks, ...)": the first line of a command with two
/// meshes.
std::string both_meshes(const Mesh& source, const Mesh& target);

/// Does a reshard or a convert, or plans it with --dry-run, and reports. Returns the exit code.
int run_job(JobKind kind, const JobOptions& options, Session& session);

}  // namespace remesh
