#pragma once

#include "job.hpp"
#include "json_parts.hpp"
#include "output.hpp"

namespace remesh {

/// What a job leaves out and casts, and what becomes of all that is no tensor.
void print_selection(const Job& job, const Wanted& wanted, Output& out);

/// The same as parts of a document: "left_out", "cast_tensors" and "side_files".
void add_selection(const Job& job, const Left& left, Json& document);

}  // namespace remesh
