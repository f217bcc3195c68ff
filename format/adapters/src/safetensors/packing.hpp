#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "header.hpp"
#include "remesh/schema/catalog.hpp"

/// @file
/// Which tensor goes into which file, and how each file begins. Pure: nothing is written here.

namespace remesh::safetensors {

/// One file, down to the place of each tensor.
struct PackedFile {
  Header header;
  std::string text;  ///< the header's JSON, padded
};

/// All files of a checkpoint. packaging.files are sorted by name, and `files` are the same ones.
struct Packing {
  Packaging packaging;
  std::vector<PackedFile> files;
};

/// Deals tensors to files as huggingface_hub does: in the given order, each to the open file while
/// it does not exceed `limit_bytes`; a tensor that alone exceeds it gets a file of its own, and
/// leaves the open one open. Tensors are given by their sizes, files are lists of their numbers.
/// Throws Error(invalid_argument) unless limit_bytes > 0.
std::vector<std::vector<std::size_t>> split(std::span<const std::int64_t> sizes_bytes,
                                            std::int64_t limit_bytes);

/// The packing of `wanted`: by split() with `shard_size_bytes`, or as wanted.packaging has it, or
/// by split() with 5 * 10^9: if that is empty, or no reader would take its files for a whole set.
/// Headers are the reference writer's, except where the packaging kept one verbatim that still
/// describes the same tensors; so is the index.
///
/// Throws Error(invalid_argument) if the packaging does not fit the tensors, Error(unsafe, RM603)
/// if a file's name is no plain path component.
Packing pack(const Catalog& wanted, std::optional<std::int64_t> shard_size_bytes);

}  // namespace remesh::safetensors
