#include "exit_code.hpp"

#include <csignal>

#include <fmt/format.h>

namespace remesh::exit_code {

int of(Errc code, int signal) noexcept {
  switch (code) {
    case Errc::invalid_argument:
      return usage;
    case Errc::not_found:
      return not_found;
    case Errc::corrupt:
    case Errc::incomplete:
      return corrupt;
    case Errc::unsupported:
      return unsupported;
    case Errc::io:
      return storage;
    case Errc::out_of_memory:
      return limit;
    case Errc::transport:
    case Errc::peer:
      return communication;
    case Errc::exists:
    case Errc::busy:
      return exists;
    case Errc::unsafe:
      return unsafe;
    case Errc::internal:
      return bug;
    case Errc::stopped:
      return 128 + (signal != 0 ? signal : SIGINT);
  }
  return bug;
}

std::string in_short() {
  std::string text = "Exit codes:\n ";
  for (const auto& [code, word, meaning] : meanings) {
    if (code == unsupported) text += "\n ";
    text += fmt::format(" {} {},", code, word);
  }
  return text + " 128+N signal N (`remesh --help` says more)";
}

std::string in_full() {
  std::string text = "Exit codes:";
  for (const auto& [code, word, meaning] : meanings) {
    text += fmt::format("\n  {:>5}  {}", code, meaning);
  }
  return text + "\n  128+N  stopped by signal N";
}

}  // namespace remesh::exit_code
