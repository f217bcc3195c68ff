#pragma once

#include <vector>

#include "arbitrary.hpp"
#include "dense_store.hpp"
#include "job.hpp"
#include "remesh/verify/diff.hpp"

namespace remesh::test {

/// What differs between some tensors and others, each side on one rank or as `layouts` draws it.
inline Diff diff_of(const std::vector<Dense>& left, const std::vector<Dense>& right,
                    const DiffOptions& options = {}, int threads = 2,
                    Arbitrary* layouts = nullptr) {
  Machine machine(threads);
  const auto ours = stored(left, layouts);
  const auto theirs = stored(right, layouts);
  const auto ours_reader = ours->reader();
  const auto theirs_reader = theirs->reader();
  return diff(machine.judge(), *ours_reader, *theirs_reader, options);
}

}  // namespace remesh::test
