#pragma once

#include "directory.hpp"
#include "remesh/store/reader.hpp"

namespace remesh::safetensors {

/// The largest file that is carried beside the tensors.
inline constexpr std::int64_t max_side_bytes = std::int64_t{64} << 20;

/// Adds to `checkpoint` every file of `directory` that neither holds its tensors nor is its index
/// or a seal, with a digest of its bytes. Not carried, and named in one note (RM108): other weight
/// files, larger files, subdirectories.
void add_side_files(const FileSystem& files, const Directory& directory, OpenCheckpoint& checkpoint,
                    Findings& findings);

}  // namespace remesh::safetensors
