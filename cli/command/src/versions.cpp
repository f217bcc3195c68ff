#include "versions.hpp"

// __GNUC__ and its like are numbers; a literal is wanted.
#define REMESH_TEXT_OF(x) #x
#define REMESH_TEXT(x) REMESH_TEXT_OF(x)

namespace remesh {

std::string_view remesh_version() noexcept { return REMESH_VERSION; }

std::string_view tool_name() noexcept { return "remesh " REMESH_VERSION; }

std::string_view hdf5_version() noexcept {
  constexpr std::string_view known = REMESH_HDF5_VERSION;
  return known.empty() ? "unknown" : known;
}

std::string_view zstd_version() noexcept {
  constexpr std::string_view known = REMESH_ZSTD_VERSION;
  return known.empty() ? "unknown" : known;
}

std::string_view compiler() noexcept {
#if defined(__clang__)
  return "clang " REMESH_TEXT(__clang_major__) "." REMESH_TEXT(__clang_minor__) "." REMESH_TEXT(
      __clang_patchlevel__);
#elif defined(__GNUC__)
  return "gcc " REMESH_TEXT(__GNUC__) "." REMESH_TEXT(__GNUC_MINOR__) "." REMESH_TEXT(
      __GNUC_PATCHLEVEL__);
#else
  return "unknown";
#endif
}

std::string_view build_type() noexcept {
  constexpr std::string_view known = REMESH_BUILD_TYPE;
  return known.empty() ? "unspecified" : known;
}

}  // namespace remesh
