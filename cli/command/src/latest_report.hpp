#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ignores.hpp"
#include "json_parts.hpp"
#include "judgement.hpp"
#include "output.hpp"
#include "remesh/adapters/run.hpp"
#include "remesh/verify/report.hpp"

namespace remesh {

/// A checkpoint of a run that was judged.
struct Found {
  std::size_t entry = 0;    ///< its number in the run
  std::string name;         ///< of that entry
  Side side;                ///< called by its path: a checkpoint may be named "left"
  Report report;            ///< but for the findings that are ignored, once these are known
  bool is_foreign = false;  ///< something lies there, of a format that nobody here reads
};

/// The answer of `remesh latest`.
struct Latest {
  std::string run_path;  ///< as it was given
  Level level = Level::quick;
  std::optional<Found> found;     ///< the newest that is whole
  std::vector<Found> rejected;    ///< the newer ones, newest first
  bool holds_any = false;         ///< whether there is any checkpoint, whole or not
  std::vector<Finding> findings;  ///< what pointers say otherwise
  Ignored ignored;
  Severity fail_from = Severity::error;  ///< from which severity on none is whole
  double seconds = 0;
};

/// What reports are made from: the run, and each checkpoint that was judged, is a side.
Judgement judgement_of(const Latest& latest);

/// Takes over from the settled judgement what is ignored, and makes it one about the run: it fails
/// where none is whole. Where one is, a job can go on, and why others are not is a warning.
void settle(Judgement& judgement, Latest& latest);

/// The path, as the last line of standard output; why newer ones are not whole, and what else says
/// otherwise, as talk.
void print_latest(const TrainingRun& run, const Latest& latest, Output& out);
Json latest_json(const TrainingRun& run, const Latest& latest);

}  // namespace remesh
