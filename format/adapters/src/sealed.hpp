#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "remesh/schema/finding.hpp"
#include "remesh/store/reader.hpp"

/// @file
/// Seals of foreign checkpoints, whatever their format: where they lie, and what becomes of a
/// checkpoint that has one.

namespace remesh::sealed {

/// A seal that is there.
struct FoundSeal {
  std::string name;
  FileSystem::Path path;       ///< where its bytes lie
  FileSystem::Path signature;  ///< where those of its signature would
};

/// Where the seal of what the user calls `target` belongs: in a directory, or beside a file. A file
/// that is a link has it beside the link: by that name it is known.
FileSystem::Path place_of(const FileSystem& files, const FileSystem::Path& target);

/// The seal at `named`, or, where that is empty, the one that lies where it belongs. Nothing if
/// there is none.
std::optional<FoundSeal> find(const FileSystem& files, const FileSystem::Path& target,
                              const FileSystem::Path& named, Findings& findings);

/// Where the files of the checkpoint at `target` lie, by name.
std::function<FileSystem::Path(const std::string& name)> files_of(const FileSystem& files,
                                                                  const FileSystem::Path& target);

/// A reader over the checkpoint, with what its seal records, if it has one.
std::unique_ptr<Reader> open(const FileSystem& files, const std::optional<FoundSeal>& seal,
                             OpenCheckpoint checkpoint, Findings& findings);

}  // namespace remesh::sealed
