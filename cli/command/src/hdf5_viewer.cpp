#include "hdf5_viewer.hpp"

#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <string_view>
#include <unistd.h>
#include <vector>

#include <sys/prctl.h>
#include <sys/resource.h>

#include "child_process.hpp"
#include "exit_code.hpp"
#include "remesh/core/error.hpp"
#include "remesh/store/hdf5_view.hpp"
#include "sanitized.hpp"

namespace remesh {
namespace {

constexpr std::int64_t least_seconds = 60;
// libhdf5 reads a few KB of a file for each dataset; a medium is slow below this.
constexpr std::int64_t bytes_a_second = std::int64_t{64} << 20;
constexpr rlim_t most_memory_bytes = rlim_t{2} << 30;
constexpr std::size_t buffer_bytes = std::size_t{32} << 10;

void limit(__rlimit_resource what, rlim_t value) {
  const rlimit both{value, value};
  if (::setrlimit(what, &both) != 0) throw Error(Errc::io, "cannot set a limit of a process");
}

// Whatever a hostile file makes of libhdf5: it writes no file and no core, takes no more than this,
// and does not outlive who asked.
void confine(unsigned seconds, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(exit_code::bug);
  ::alarm(seconds);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_CPU, seconds);
// The sanitizers reserve more address space than any limit that would be of use.
#ifndef REMESH_SANITIZED
  limit(RLIMIT_AS, most_memory_bytes);
#endif
}

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw Error(Errc::io, "nobody reads the view");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::optional<int> number_in(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number <= 0) return std::nullopt;
  return number;
}

}  // namespace

Hdf5Viewer hdf5_viewer(const FileSystem& files, const FileSystem::Path& checkpoint,
                       const StopFlag& stop) {
  return [&files, &stop, checkpoint](const std::string& file, const TextSink& sink) {
    const FileSystem::Path path = checkpoint / file;
    const auto entry = files.look(path);
    const std::int64_t bytes = entry ? entry->size_bytes : 0;
    const std::int64_t seconds = least_seconds + bytes / bytes_a_second;
    run_child({"/proc/self/exe", hdf5_view_option, path.string(), std::to_string(seconds),
               std::to_string(::getpid())},
              std::chrono::seconds(seconds), stop, sink);
  };
}

int run_hdf5_view_child(int count, char** arguments) {
  const auto seconds = count == 3 ? number_in(arguments[1]) : std::nullopt;
  const auto parent = count == 3 ? number_in(arguments[2]) : std::nullopt;
  if (!seconds || !parent) return exit_code::usage;
  try {
    confine(static_cast<unsigned>(*seconds), *parent);
    std::string buffer;
    write_hdf5_view(arguments[0], [&buffer](std::string_view text) {
      buffer += text;
      if (buffer.size() < buffer_bytes) return;
      write_all(buffer);
      buffer.clear();
    });
    write_all(buffer);
    return exit_code::done;
  } catch (const std::exception&) {
    return exit_code::storage;
  }
}

}  // namespace remesh
