#pragma once

#include <memory>
#include <string>

#include "output.hpp"
#include "remesh/core/budget.hpp"
#include "remesh/core/log.hpp"
#include "remesh/core/progress.hpp"
#include "remesh/core/thread_pool.hpp"
#include "remesh/execute/context.hpp"
#include "remesh/verify/verify.hpp"

namespace remesh {

/// How much of the machine a command may use, and how it shows that it works.
struct WorkOptions {
  int threads = 0;
  std::string memory = "1GiB";
  std::string read_limit;
  std::string progress = "auto";
};

/// The bytes a second that --read-limit allows; 0 where it is not given. Throws
/// Error(invalid_argument) if it is no rate.
std::int64_t read_limit_of(const WorkOptions& options);

/// The threads, the memory and the watchers of one command.
class Machine {
 public:
  /// Throws Error(invalid_argument) for a --memory that is no size, Error(out_of_memory) for one
  /// that is too small. `stop` must outlive the machine.
  Machine(const WorkOptions& options, const Output& out, const StopFlag& stop);

  Context context();
  JudgeContext judge();

  const MemoryBudget& budget() const noexcept { return budget_; }

 private:
  MemoryBudget budget_;
  ThreadPool pool_;
  std::unique_ptr<Progress> progress_;
  Log log_;
  const StopFlag& stop_;
};

}  // namespace remesh
