#pragma once

#include "remesh/adapters/run.hpp"

namespace remesh {

/// Whether a file, or a link, of this name says which checkpoint is the latest.
bool is_pointer_name(std::string_view name, EntryKind kind);

/// What such a file or link names. Never throws for what stands in it.
RunPointer read_pointer(const FileSystem& files, const FileSystem::Path& path,
                        const std::vector<RunEntry>& entries);

}  // namespace remesh
