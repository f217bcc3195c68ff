#include "installed.hpp"

#include <filesystem>
#include <system_error>

namespace remesh {
namespace {

std::string beside_program(const char* relative) {
  std::error_code failed;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed) return {};
  const auto place = (program.parent_path() / relative).lexically_normal();
  return std::filesystem::is_directory(place, failed) ? place.string() : std::string();
}

}  // namespace

std::string schema_directory() { return beside_program(REMESH_BIN_TO_SCHEMAS); }

std::string hdf5_plugin_directory() { return beside_program(REMESH_BIN_TO_PLUGINS); }

}  // namespace remesh
