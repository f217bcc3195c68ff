#include "refusal.hpp"

namespace remesh {

std::optional<Finding> finding_of(const Error& error) {
  const Errc code = error.code();
  if (code != Errc::corrupt && code != Errc::incomplete && code != Errc::unsafe) {
    return std::nullopt;
  }
  Finding finding;
  finding.id = error.id().empty() ? "RM202" : error.id();
  finding.message = error.what();
  return finding;
}

}  // namespace remesh
