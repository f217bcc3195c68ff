#pragma once

#include <memory>

#include "remesh/store/reader.hpp"
#include "remesh/store/writer.hpp"

/// @file
/// The native checkpoint: a directory of manifest.json, COMMIT, side/ and one plain HDF5 file for
/// each rank that stores something. format/SPEC.md is its law.

namespace remesh {

/// Whether `path` is meant as a native checkpoint: a directory with a manifest, a COMMIT or shards.
bool looks_native(const FileSystem& files, const FileSystem::Path& path);

/// Opens a committed checkpoint: manifest against COMMIT, and of each shard the header, the index
/// and the size; then pieces against the layout tag, and coverage of every tensor. Reads no
/// payload. What is wrong goes to `findings`; with a collecting one, as much as is readable is
/// opened. Returns null only if a collecting `findings` got an error that leaves nothing to open.
std::unique_ptr<Reader> open_native(const FileSystem& files, const FileSystem::Path& path,
                                    Findings& findings);

/// Starts to write `wanted` (format "remesh") at `destination`. Creates the files with their final
/// sizes, headers and indexes, in a temporary directory. `files` must outlive the writer.
/// Throws as Staging does; Error(io, RM702) if the payload does not fit the file system.
std::unique_ptr<Writer> create_native(FileSystem& files, const FileSystem::Path& destination,
                                      Catalog wanted, const SideSource& side,
                                      const WriterOptions& options);

}  // namespace remesh
