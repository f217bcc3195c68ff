#include "machine.hpp"

#include <string_view>

#include "progress_view.hpp"
#include "remesh/core/error.hpp"

namespace remesh {
namespace {

LogLevel level_of(const Output& out) {
  if (out.quiet()) return LogLevel::error;
  if (out.verbose() > 1) return LogLevel::debug;
  return out.verbose() == 1 ? LogLevel::info : LogLevel::warn;
}

}  // namespace

std::int64_t read_limit_of(const WorkOptions& options) {
  std::string_view rate = options.read_limit;
  if (rate.empty()) return 0;
  if (rate.ends_with("/s")) rate.remove_suffix(2);
  const std::int64_t bytes = parse_bytes(rate);
  if (bytes > 0) return bytes;
  throw Error(Errc::invalid_argument, "cannot read at a rate of 0 bytes a second");
}

Machine::Machine(const WorkOptions& options, const Output& out, const StopFlag& stop)
    : budget_(parse_bytes(options.memory)),
      pool_(options.threads),
      progress_(make_progress(options.progress, out.quiet())),
      log_(level_of(out)),
      stop_(stop) {}

Context Machine::context() { return {pool_, budget_, *progress_, log_, stop_}; }

JudgeContext Machine::judge() { return {pool_, budget_, *progress_, stop_}; }

}  // namespace remesh
