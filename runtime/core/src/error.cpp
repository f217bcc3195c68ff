#include "remesh/core/error.hpp"

#include <utility>

namespace remesh {

const char* to_string(Errc code) noexcept {
  switch (code) {
    case Errc::invalid_argument:
      return "invalid_argument";
    case Errc::not_found:
      return "not_found";
    case Errc::corrupt:
      return "corrupt";
    case Errc::incomplete:
      return "incomplete";
    case Errc::unsupported:
      return "unsupported";
    case Errc::io:
      return "io";
    case Errc::out_of_memory:
      return "out_of_memory";
    case Errc::transport:
      return "transport";
    case Errc::peer:
      return "peer";
    case Errc::exists:
      return "exists";
    case Errc::busy:
      return "busy";
    case Errc::unsafe:
      return "unsafe";
    case Errc::internal:
      return "internal";
    case Errc::stopped:
      return "stopped";
  }
  return "unknown";
}

Error::Error(Errc code, const std::string& message, std::string id)
    : std::runtime_error(message), code_(code), id_(std::move(id)) {}

}  // namespace remesh
