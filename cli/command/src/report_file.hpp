#pragma once

#include <span>
#include <string>
#include <string_view>

/// @file
/// Files that a command writes besides its answer: reports are renewed on every run.

namespace remesh {

/// Whether a report can lie there. Throws Error(exists) unless `path` is free or a regular file,
/// and Error(invalid_argument) if it lies in, or is, one of the checkpoints that are judged:
/// nothing is written where we judge; as check_has_directory(). `flag`: "--junit", for errors.
void check_report_path(const std::string& flag, const std::string& path,
                       std::span<const std::string> judged);

/// Throws Error(io) unless there is a directory in which this user may create a file `path`: what
/// is missing is storage, not input. `what`: "`--junit out/x`", for the error.
void check_has_directory(const std::string& what, const std::string& path);

/// Whether two paths are of one file, as far as can be told while there is none.
bool is_same_place(const std::string& one, const std::string& other);

/// Removes the report of an earlier run, if there is one. Throws as fail_to_write() does.
void remove_report(const std::string& path);

/// Writes a file whole or not at all: under another name first. Throws as fail_to_write()
/// does.
void write_report(const std::string& path, std::string_view text);

}  // namespace remesh
