#pragma once

#include <cstdlib>

namespace remesh::test {

/// How many seeds a property test runs: `usual`, or so many times more as REMESH_SOAK says
/// (`./dev soak`).
inline unsigned num_seeds(unsigned usual) {
  const char* const times = std::getenv("REMESH_SOAK");  // NOLINT(concurrency-mt-unsafe)
  return times == nullptr ? usual : usual * static_cast<unsigned>(std::atoi(times));
}

}  // namespace remesh::test
