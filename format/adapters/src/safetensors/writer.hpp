#pragma once

#include <memory>

#include "remesh/store/writer.hpp"

namespace remesh::safetensors {

/// Starts to write a Hugging Face directory. Its files have their headers and final sizes from here
/// on, and its index is there. `files` must outlive the writer.
/// Throws as Staging does; Error(io, RM702) if the payload does not fit the file system;
/// Error(invalid_argument) as pack() does, or if a side file has the name of a file of tensors.
std::unique_ptr<Writer> create(FileSystem& files, const FileSystem::Path& destination,
                               Catalog wanted, const SideSource& side,
                               const WriterOptions& options);

}  // namespace remesh::safetensors
