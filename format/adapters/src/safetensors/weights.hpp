#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "directory.hpp"
#include "index.hpp"
#include "remesh/store/reader.hpp"

namespace remesh::safetensors {

/// The files of a checkpoint that hold its weights, or its optimizer.
struct WeightSet {
  std::vector<FoundFile> files;  ///< those that are there, sorted by name
  bool whole = true;             ///< whether the index lists no others
  std::string_view index_name = safetensors::index_name;
  std::optional<WeightIndex> index;
  std::string index_text;  ///< verbatim; empty where there is no index
};

/// Whether a file of that name belongs to an optimizer: `optimizer.safetensors`, its index, and
/// `optimizer-00001-of-00002.safetensors`.
bool is_optimizer_file(std::string_view name) noexcept;

/// The weights: the files that the index lists, or `model.safetensors`, or the only *.safetensors
/// of a directory beside those of an optimizer. What is wrong (no such file RM101, several without
/// an index RM205, an index that cannot be read, files that it lists in vain or of which names say
/// that they must be there RM203) goes to `findings`; what is there is chosen all the same.
WeightSet choose_weights(const FileSystem& files, const Directory& directory,
                         std::string_view where, Findings& findings);

/// The optimizer, if there is one: the files that its index lists, or `optimizer.safetensors`. Of
/// shards without an index none is chosen; RM203 where some are absent.
std::optional<WeightSet> choose_optimizer(const FileSystem& files, const Directory& directory,
                                          Findings& findings);

/// Parses the header of each file, and puts together catalog, extents, paths and packaging; tensors
/// by file, then by place. Holds each index against its files, both ways (RM206). A file whose
/// header cannot be read has no tensors. Nothing if that is all of them.
std::optional<OpenCheckpoint> open_weights(const FileSystem& files, WeightSet weights,
                                           std::optional<WeightSet> optimizer, Findings& findings);

}  // namespace remesh::safetensors
