#pragma once

#include <string_view>

/// @file
/// What was known when the program was built.

namespace remesh {

/// "0.1.0".
std::string_view remesh_version() noexcept;
/// "remesh 0.1.0": how JSON documents name their author.
std::string_view tool_name() noexcept;
/// The HDF5 that shards are created with; "unknown" where the build could not tell.
std::string_view hdf5_version() noexcept;
/// The zstd that packs them; likewise.
std::string_view zstd_version() noexcept;
/// "gcc 12.2.0", "clang 14.0.6".
std::string_view compiler() noexcept;
/// "Release", "Debug"; "unspecified" where none was chosen.
std::string_view build_type() noexcept;

}  // namespace remesh
