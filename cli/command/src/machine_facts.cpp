#include "machine_facts.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sched.h>
#include <sstream>
#include <string_view>
#include <unistd.h>

namespace remesh {
namespace {

// A number alone in a file; nothing for "max" and for files that are not there.
std::optional<std::int64_t> number_in(const char* path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

// The value of the first line of /proc/cpuinfo that begins with `key`.
std::string cpuinfo(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (line.starts_with(key) && colon != std::string::npos && colon + 2 <= line.size()) {
      return line.substr(colon + 2);
    }
  }
  return {};
}

}  // namespace

std::string processor_name() {
  std::string name = cpuinfo("model name");
  return name.empty() ? "unknown" : name;
}

std::vector<std::string> processor_features() {
  std::vector<std::string> found;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("pclmul") != 0) found.emplace_back("pclmul");
  if (__builtin_cpu_supports("sse4.2") != 0) found.emplace_back("sse4.2");
  if (__builtin_cpu_supports("avx2") != 0) found.emplace_back("avx2");
  if (__builtin_cpu_supports("avx512f") != 0) found.emplace_back("avx512f");
  if (__builtin_cpu_supports("vpclmulqdq") != 0) found.emplace_back("vpclmulqdq");
#endif
  return found;
}

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set);
}

std::int64_t memory_limit_bytes() {
  const std::int64_t machine = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  const auto none = std::numeric_limits<std::int64_t>::max();
  return std::min({machine, number_in("/sys/fs/cgroup/memory.max").value_or(none),
                   number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes").value_or(none)});
}

std::optional<std::int64_t> resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t total = 0;
  std::int64_t resident = 0;
  if (file >> total >> resident) return resident * sysconf(_SC_PAGESIZE);
  return std::nullopt;
}

}  // namespace remesh
