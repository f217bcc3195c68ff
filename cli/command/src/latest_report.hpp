#pragma once

#include <optional>
#include <string>
#include <vector>

#include "json_parts.hpp"
#include "output.hpp"
#include "remesh/adapters/run.hpp"
#include "remesh/verify/report.hpp"

namespace remesh {

/// A checkpoint of a run that was judged.
struct Found {
  std::size_t entry = 0;  ///< its number in the run
  std::string format;     ///< empty where it could not be opened
  std::optional<Mesh> mesh;
  Report report;
};

/// The answer of `remesh latest`.
struct Latest {
  std::string run_path;  ///< as it was given
  Level level = Level::quick;
  std::optional<Found> found;     ///< the newest that is whole
  std::vector<Found> rejected;    ///< the newer ones, newest first
  bool holds_any = false;         ///< whether there is any checkpoint, whole or not
  std::vector<Finding> findings;  ///< what pointers say otherwise
  double seconds = 0;
};

/// The path, as the last line of standard output; why newer ones are not whole, and what else says
/// otherwise, as talk.
void print_latest(const TrainingRun& run, const Latest& latest, Output& out);
Json latest_json(const TrainingRun& run, const Latest& latest);

}  // namespace remesh
