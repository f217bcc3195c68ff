#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "remesh/schema/catalog.hpp"
#include "remesh/store/certificate.hpp"

namespace remesh {

/// What of a checkpoint is wanted, and as what. By default: all of it, as it is.
struct Selection {
  /// Only tensors that match one of these; empty: all. A pattern is a shell's glob, in which '*'
  /// stands for dots too. One that matches a parameter's name stands for its states as well.
  std::vector<std::string> include;
  /// Not those that match one of these.
  std::vector<std::string> exclude;
  /// No optimizer states, and no side file of the training (is_training_file).
  bool weights_only = false;
  /// Parameters that are floats become this. Optimizer states keep their dtype.
  std::optional<DType> dtype;
  std::string source_name = "CHECKPOINT";  ///< what messages call the checkpoint

  /// Whether nothing is left out or changed.
  bool is_all() const noexcept {
    return include.empty() && exclude.empty() && !weights_only && !dtype;
  }
};

/// What a selection left out of a catalog, and what it changes.
struct Left {
  std::vector<Dropped> tensors;     ///< in the catalog's order
  std::int64_t bytes = 0;           ///< of their payload
  std::vector<Dropped> side;        ///< side files
  std::int64_t cast_tensors = 0;    ///< that get another dtype
  std::int64_t uncast_tensors = 0;  ///< parameters that no cast is known for
};

/// Takes what `selection` leaves out away from `catalog`, and says what that was. Its digests are
/// dropped. Throws Error(invalid_argument) if a pattern matches nothing, or if no parameter is
/// left; Error(incomplete, RM309) if some parameters are left without states that others keep,
/// which no reader would take; Error(unsupported) if selection.dtype is none that values can be
/// cast to.
Left apply(const Selection& selection, Catalog& catalog);

/// Whether a side file is of the training, and says nothing about the model: trainer_state.json,
/// training_args.bin, scheduler.pt, scaler.pt.
bool is_training_file(std::string_view name) noexcept;

}  // namespace remesh
