#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "remesh/core/budget.hpp"
#include "remesh/core/digest.hpp"
#include "remesh/core/progress.hpp"
#include "remesh/core/thread_pool.hpp"
#include "remesh/store/hdf5_view.hpp"
#include "remesh/store/reader.hpp"
#include "remesh/verify/report.hpp"

namespace remesh {

/// What a judge needs of the machine.
struct JudgeContext {
  ThreadPool& pool;
  MemoryBudget& budget;
  Progress& progress;
  const StopFlag& stop;
};

/// Opens a checkpoint and tells `findings` what is wrong with its container. May return null.
using Opener = std::function<std::unique_ptr<Reader>(Findings& findings)>;

/// Has libhdf5 read one file of a checkpoint, in a process that may die of it, and hands over what
/// that says (remesh/store/hdf5_view.hpp), as it comes. Called by several threads at once.
/// Throws Error(corrupt, RM211) if that process failed, Error(stopped), Error(io); what `sink`
/// throws passes through, when the process has been ended.
using Hdf5Viewer = std::function<void(const std::string& file, const TextSink& sink)>;

/// A checkpoint to be judged. Only `deep` needs the viewer.
struct Suspect {
  Suspect(Opener its_opener, Hdf5Viewer its_viewer = {},
          std::optional<std::int64_t> its_named_step = {})
      : open(std::move(its_opener)), view(std::move(its_viewer)), named_step(its_named_step) {}

  Opener open;
  Hdf5Viewer view;
  std::optional<std::int64_t> named_step;  ///< that its directory's name says
};

/// Is this checkpoint whole and true? Everything that is wrong with it is a finding with file and
/// byte range, tensor and box; a checkpoint that cannot be opened at all is one too.
/// Throws only where the question could not be answered: Error(not_found) from `suspect.open` if
/// there is nothing to judge, Error(io), Error(out_of_memory), Error(stopped).
///
/// With a `subset`, `full` and `deep` read that part of the bytes alone, and compare its blocks
/// with recorded CRCs: all parts together are every byte. Headers are judged always, digests and
/// numbers of tensors never. Throws Error(invalid_argument) unless 1 <= number <= count, and at
/// other levels.
Report verify(const JudgeContext& context, const Suspect& suspect, Level level,
              const std::optional<Subset>& subset = std::nullopt);

/// Are two checkpoints the same tensors, bit for bit, whatever their layouts and formats? Each is
/// judged by itself first; then names, dtypes, shapes and digests are compared. From `full` on the
/// digests are recomputed from the bytes of both sides. At `header` and `quick` recorded ones are
/// compared; a side that records none has them recomputed. Report::recomputed tells whether both
/// sides' were.
Report verify_against(const JudgeContext& context, const Suspect& left, const Suspect& right,
                      Level level);

/// Is this what training makes of an earlier save? It is judged by itself first, then held against
/// `previous`, whatever the layouts and formats of both: RM501, RM503, RM512, RM302, RM303, RM310
/// (verify/README.md has the rules). Of the earlier one every byte is read; what is damaged there
/// is not compared, which one warning tells. NaN and infinities (RM511) are looked for at `full`
/// too. A save that does not say its step is of the `named` one; one that is there twice under
/// names of two steps is told. Throws as verify(). Preconditions: level >= full, and `previous` is
/// not null.
Report verify_since(const JudgeContext& context, const Suspect& suspect,
                    std::unique_ptr<Reader> previous, Level level, const NamedSteps& named = {});

/// The digest of every tensor, in catalog order: recomputed from the bytes.
/// Throws Error(corrupt) if the checkpoint does not verify while its bytes are read.
std::vector<Digest> tensor_digests(const JudgeContext& context, const Reader& reader);

}  // namespace remesh
