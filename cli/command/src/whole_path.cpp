#include "whole_path.hpp"

#include <system_error>

namespace remesh {

std::filesystem::path whole_path(const std::filesystem::path& path) {
  std::error_code failed;
  std::filesystem::path whole = std::filesystem::weakly_canonical(path, failed);
  return failed ? path : whole;
}

}  // namespace remesh
