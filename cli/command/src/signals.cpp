#include "signals.hpp"

#include <atomic>
#include <csignal>

namespace remesh {
namespace {

// A handler has no argument of ours, so this is the one global of the program.
std::atomic<StopFlag*> asked{nullptr};
static_assert(std::atomic<StopFlag*>::is_always_lock_free, "a signal handler reads it");

void ask(int signal) noexcept {
  if (StopFlag* stop = asked.load(std::memory_order_relaxed)) stop->request(signal);
}

}  // namespace

void stop_on_signals(StopFlag& stop) {
  asked.store(&stop);
  struct sigaction action {};
  action.sa_handler = ask;
  // Reset: who asks twice wants out. Restart: a write that was under way is not torn.
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    // Who started us with `nohup`, or behind a '&', does not want to be heard.
    if (signal != SIGTERM && before.sa_handler == SIG_IGN) continue;
    sigaction(signal, &action, nullptr);
  }
  struct sigaction ignored {};
  ignored.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignored, nullptr);
  sigaction(SIGXFSZ, &ignored, nullptr);  // a file beyond the limit is a failed write like others
}

}  // namespace remesh
