#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "manifest.hpp"
#include "remesh/store/file_system.hpp"
#include "remesh/store/signing_key.hpp"

namespace remesh::native {

/// The files whose tree hashes a manifest has, by their names in the checkpoint: the shards, then
/// the side files.
std::vector<std::string> signed_files(const Manifest& manifest);

/// Their tree hashes, from what lies in `directory`. `threads` is ThreadPool's size; `stop` may be
/// null.
Trees trees_of(const FileSystem& files, const FileSystem::Path& directory, const Manifest& manifest,
               int threads, const StopFlag* stop);

/// Writes the signature of a manifest's text into `directory`, and syncs it. It depends on nothing
/// but the arguments.
void write_signature(FileSystem& files, const FileSystem::Path& directory,
                     std::string_view manifest, const std::string& save_id, const SecretKey& key);

}  // namespace remesh::native
