#pragma once

#include <memory>
#include <optional>

#include "remesh/schema/finding.hpp"
#include "remesh/store/reader.hpp"

namespace remesh::safetensors {

/// Whether `path` is a *.safetensors file, one that begins like one, or a directory with an index
/// or such files.
bool recognises(const FileSystem& files, const FileSystem::Path& path);

/// Opens a Hugging Face directory, or a single safetensors file. Reads headers, index and side
/// files, and no payload. README.md lists what is found wrong, and under which id.
std::unique_ptr<Reader> open(const FileSystem& files, const FileSystem::Path& path,
                             Findings& findings);

/// The same, before a Reader is made of it; nothing if there is nothing to open. `called` is how
/// the user calls it: a single file has its name from there, for in the hub's cache `path` ends in
/// a hash.
std::optional<OpenCheckpoint> parse_whole(const FileSystem& files, const FileSystem::Path& path,
                                          const FileSystem::Path& called, Findings& findings);

/// The same, without holding an optimizer against its weights. Without side files they are neither
/// read nor reported.
std::optional<OpenCheckpoint> parse(const FileSystem& files, const FileSystem::Path& path,
                                    const FileSystem::Path& called, bool with_side_files,
                                    Findings& findings);

}  // namespace remesh::safetensors
