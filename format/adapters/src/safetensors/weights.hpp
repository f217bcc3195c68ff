#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "directory.hpp"
#include "index.hpp"
#include "remesh/store/reader.hpp"

namespace remesh::safetensors {

/// The files of a checkpoint that hold its tensors.
struct WeightSet {
  std::vector<FoundFile> files;  ///< those that are there, sorted by name
  bool whole = true;             ///< whether the index lists no others
  std::optional<WeightIndex> index;
  std::string index_text;  ///< verbatim; empty where there is no index
};

/// Those that the index lists, or `model.safetensors`, or the only *.safetensors of a directory.
/// What is wrong (no such file RM101, several without an index RM205, an index that cannot be read,
/// files that it lists in vain RM203) goes to `findings`; what is there is chosen all the same.
WeightSet choose_weights(const FileSystem& files, const Directory& directory,
                         std::string_view where, Findings& findings);

/// Parses the header of each file, and puts together catalog, extents, paths and packaging; tensors
/// by file, then by place. Holds the index against the files, both ways (RM206). A file whose
/// header cannot be read has no tensors. Nothing if that is all of them.
std::optional<OpenCheckpoint> open_weights(const FileSystem& files, WeightSet weights,
                                           Findings& findings);

}  // namespace remesh::safetensors
