#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "remesh/core/progress.hpp"

namespace remesh {

/// Shows on standard error how far a job is. `mode` is one of
///   bar    one line that is drawn over: stage, bar, bytes, rate, time left
///   plain  a line every 10 s or 5 %, but none more often than every second
///   json   the same as one JSON object a line, twice a second
///   off    nothing
///   auto   off if `quiet`, a bar on a terminal, plain elsewhere
std::unique_ptr<Progress> make_progress(std::string_view mode, bool quiet);

/// One state of a job, as text: "reading 41% 212.0 MiB/517.0 MiB 5.6 GiB/s ETA 0:54".
struct ProgressState {
  std::string stage;
  std::int64_t bytes = 0;
  std::int64_t total_bytes = 0;
  double seconds = 0;  ///< since the stage began

  int percent() const noexcept;
  double bytes_per_second() const noexcept;
  double seconds_left() const noexcept;
};
std::string plain_text(const ProgressState& state);
std::string bar_text(const ProgressState& state);
std::string json_text(const ProgressState& state);

}  // namespace remesh
