#pragma once

#include <filesystem>
#include <string>

#include "job.hpp"
#include "remesh/adapters/open.hpp"
#include "remesh/store/seal.hpp"

namespace remesh::test {

/// The text of the seal of a foreign checkpoint, which is read for it.
inline std::string sealed_text(Machine& machine, const std::filesystem::path& path,
                               bool with_trees = false) {
  StrictFindings findings;
  OpenCheckpoint checkpoint = open_to_seal(posix_file_system(), path, {}, findings);
  return seal_text(make_seal({machine.pool, machine.budget, machine.progress, machine.stop},
                             posix_file_system(), std::move(checkpoint), with_trees));
}

/// Seals it as the program does, and returns where.
inline std::filesystem::path seal(Machine& machine, const std::filesystem::path& path) {
  const std::filesystem::path place = seal_place(posix_file_system(), path);
  write_seal(posix_file_system(), place, sealed_text(machine, path), "");
  return place;
}

}  // namespace remesh::test
