#pragma once

#include "remesh/core/budget.hpp"
#include "remesh/core/log.hpp"
#include "remesh/core/progress.hpp"
#include "remesh/core/thread_pool.hpp"

namespace remesh {

/// All that a verb needs of the machine. Its parts outlive every call that is given it.
struct Context {
  ThreadPool& pool;
  MemoryBudget& budget;
  Progress& progress;
  const Log& log;
  const StopFlag& stop;
};

}  // namespace remesh
