#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/schema/finding.hpp"
#include "remesh/store/file_system.hpp"

/// @file
/// The directory of a training run: a checkpoint for each of many steps, what interrupted jobs left
/// there, and files that name one of the checkpoints.

namespace remesh {

/// The step that the name of a directory says: 12000 for "iter_0012000", "global_step12000",
/// "checkpoint-12000", "step=12000.tp4" and "12000". It is the number behind the word "step",
/// "iter" or "iteration", in small or capital letters, with at most one of `-_=.` between; without
/// such a word the one behind "checkpoint" or "ckpt", without those the one behind "epoch" (which
/// orders them as a step does), or the whole name. Of several words of a kind the last one counts.
/// "12k" behind a word is 12000, "2m" 2000000, in capital letters too, where the name ends there or
/// one of `-_=.` follows. Nothing for any other name, and for numbers beyond 18 digits.
std::optional<std::int64_t> step_in_name(std::string_view name);

/// A directory of a run that is a checkpoint, or was meant as one.
struct RunEntry {
  std::string name;  ///< of the directory, or of a link to one elsewhere
  /// What its name says, or else its trainer_state.json; nothing where neither does.
  std::optional<std::int64_t> step;
  /// ".NAME.remesh-<job>": a job did not finish it, or is writing it now. Or a part of its name
  /// says the like ("tmp", "partial"), or that somebody put it aside ("old", "corrupt").
  bool is_leftover = false;
  /// False where its name says a step but might be that of something else ("eval_step_100"): then
  /// it is a checkpoint only if a format recognises it, which costs a look into it.
  bool is_meant = true;

  friend bool operator==(const RunEntry&, const RunEntry&) = default;
};

/// A file, or a link, that says which checkpoint is the latest.
struct RunPointer {
  std::string name;                  ///< its own: "latest"
  std::string target;                ///< what it names; empty where that is no name
  std::optional<std::int64_t> step;  ///< that `target` says
  /// Whether it speaks of conversions ("latest_universal"), which not every step has.
  bool is_of_conversions = false;

  friend bool operator==(const RunPointer&, const RunPointer&) = default;
};

/// What the names in a directory say.
struct TrainingRun {
  /// The lowest step first; before them those without a step. Of one step by name.
  std::vector<RunEntry> entries;
  std::vector<RunPointer> pointers;  ///< by name
};

/// Lists a directory. A directory whose name says a step is not looked into; any other one is an
/// entry if a format recognises it. Links to directories elsewhere count as directories; a link to
/// an entry does not make another one.
/// Pointers are files of the names "latest" (DeepSpeed), "latest_universal",
/// "latest_checkpointed_iteration.txt" (Megatron) and "last", and links whose names begin with
/// "latest" or "last". Throws Error(io).
TrainingRun read_run(const FileSystem& files, const FileSystem::Path& directory);

/// The entries that may be the newest one, the likeliest first: by step from the highest to the
/// lowest, then those without a step; of one step by name. Leftovers are the last of their step.
/// When a file changed decides nothing.
std::vector<std::size_t> newest_first(const TrainingRun& run);

/// RM105: what is wrong with a leftover, whatever lies in it.
Finding unfinished(const RunEntry& leftover);

/// RM107, a warning, for each pointer that names nothing, or something else than the newest whole
/// checkpoint, `newest`, a number in TrainingRun::entries; nothing: none is whole, or it is not
/// known.
std::vector<Finding> check_pointers(const TrainingRun& run, std::optional<std::size_t> newest);

}  // namespace remesh
