#include "machine.hpp"

#include "progress_view.hpp"

namespace remesh {
namespace {

LogLevel level_of(const Output& out) {
  if (out.quiet()) return LogLevel::error;
  if (out.verbose() > 1) return LogLevel::debug;
  return out.verbose() == 1 ? LogLevel::info : LogLevel::warn;
}

}  // namespace

Machine::Machine(const WorkOptions& options, const Output& out, const StopFlag& stop)
    : budget_(parse_bytes(options.memory)),
      pool_(options.threads),
      progress_(make_progress(options.progress, out.quiet())),
      log_(level_of(out)),
      stop_(stop) {}

Context Machine::context() { return {pool_, budget_, *progress_, log_, stop_}; }

JudgeContext Machine::judge() { return {pool_, budget_, *progress_, stop_}; }

}  // namespace remesh
