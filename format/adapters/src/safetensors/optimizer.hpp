#pragma once

#include "remesh/schema/finding.hpp"
#include "remesh/store/reader.hpp"

namespace remesh::safetensors {

/// Holds an optimizer against its weights and against itself: RM310, tensors of its files that are
/// a state of no parameter; RM502, steps that are not one and the same. A step is what the
/// `__metadata__` of a file of the optimizer calls "step", what a state "step" of one element is,
/// and what trainer_state.json, among the side files, calls "step" or "global_step".
void check_optimizer(const FileSystem& files, const OpenCheckpoint& checkpoint, Findings& findings);

}  // namespace remesh::safetensors
