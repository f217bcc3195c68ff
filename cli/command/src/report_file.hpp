#pragma once

#include <span>
#include <string>
#include <string_view>

/// @file
/// Files that a command writes besides its answer: reports are renewed on every run.

namespace remesh {

/// Whether a report can lie there. Throws Error(exists) unless `path` is free or a regular file,
/// and Error(invalid_argument) if it lies in, or is, one of the checkpoints that are judged:
/// nothing is written where we judge. `flag`: "--junit", for errors.
void check_report_path(const std::string& flag, const std::string& path,
                       std::span<const std::string> judged);

/// Writes a file whole or not at all: under another name first. Throws Error(io).
void write_report(const std::string& path, std::string_view text);

}  // namespace remesh
