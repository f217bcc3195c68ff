#include "child_process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <string_view>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <sys/wait.h>

#include "remesh/core/error.hpp"

namespace remesh {
namespace {

using Clock = std::chrono::steady_clock;

// How long a stop or the deadline may go unnoticed.
constexpr std::chrono::milliseconds glance{50};
constexpr std::size_t buffer_bytes = std::size_t{64} << 10;

[[noreturn]] void fail(std::string_view what, int error) {
  throw Error(Errc::io,
              fmt::format("cannot start a child process: {}: {}", what,
                          std::generic_category().message(error)),
              "RM703");
}

void check(int error, std::string_view what) {
  if (error != 0) fail(what, error);
}

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

struct Pipe {
  Descriptor read;
  Descriptor write;
};

Pipe open_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe", errno);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

class FileActions {
 public:
  explicit FileActions(int output) {
    check(::posix_spawn_file_actions_init(&actions_), "file actions");
    check(::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0),
          "standard input");
    check(::posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO), "standard output");
    check(::posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0),
          "standard error");
    check(::posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1), "closefrom");
  }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  const posix_spawn_file_actions_t* get() const noexcept { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

// A group of its own, so that a Ctrl-C reaches us alone and we end the child; all signals as at
// the start of a program, since what we ignore would stay ignored.
class Attributes {
 public:
  Attributes() {
    check(::posix_spawnattr_init(&attributes_), "attributes");
    sigset_t all;
    sigset_t none;
    sigfillset(&all);
    sigemptyset(&none);
    check(::posix_spawnattr_setsigdefault(&attributes_, &all), "signals");
    check(::posix_spawnattr_setsigmask(&attributes_, &none), "signal mask");
    check(::posix_spawnattr_setpgroup(&attributes_, 0), "process group");
    check(::posix_spawnattr_setflags(
              &attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP),
          "flags");
  }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  ~Attributes() { ::posix_spawnattr_destroy(&attributes_); }
  const posix_spawnattr_t* get() const noexcept { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

// "::" is HDF5's word for no plug-ins at all.
std::vector<std::string> environment() {
  std::vector<std::string> all{"HDF5_PLUGIN_PRELOAD=::", "HDF5_PLUGIN_PATH="};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with("HDF5_")) all.emplace_back(*entry);
  }
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

class Child {
 public:
  Child(std::vector<std::string> command, Clock::time_point deadline, const StopFlag& stop)
      : deadline_(deadline), stop_(stop) {
    Pipe pipe = open_pipe();
    const FileActions actions(pipe.write.get());
    const Attributes attributes;
    std::vector<std::string> variables = environment();
    const std::vector<char*> arguments = pointers_to(command);
    const std::vector<char*> environment = pointers_to(variables);
    check(::posix_spawn(&pid_, arguments.front(), actions.get(), attributes.get(), arguments.data(),
                        environment.data()),
          command.front());
    output_ = std::move(pipe.read);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (ended_) return;
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  // Nothing at the end of the output.
  std::string_view read() {
    while (true) {
      check_time();
      pollfd ready{output_.get(), POLLIN, 0};
      if (::poll(&ready, 1, static_cast<int>(glance.count())) <= 0) continue;
      const ssize_t bytes = ::read(output_.get(), buffer_.data(), buffer_.size());
      if (bytes >= 0) return {buffer_.data(), static_cast<std::size_t>(bytes)};
      if (errno != EINTR) fail("read", errno);
    }
  }

  // As waitpid tells it.
  int wait() {
    int status = 0;
    pid_t found = 0;
    while ((found = ::waitpid(pid_, &status, WNOHANG)) == 0) {
      check_time();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ended_ = true;
    if (found < 0) fail("wait", errno);
    return status;
  }

 private:
  void check_time() const {
    stop_.check();
    if (Clock::now() < deadline_) return;
    throw Error(Errc::corrupt, "the process that reads it with libhdf5 did not end in time",
                "RM211");
  }

  Clock::time_point deadline_;
  const StopFlag& stop_;
  pid_t pid_ = -1;
  bool ended_ = false;
  Descriptor output_;
  std::vector<char> buffer_ = std::vector<char>(buffer_bytes);
};

void check_end(int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  const char* name = WIFSIGNALED(status) ? ::sigdescr_np(WTERMSIG(status)) : nullptr;
  const std::string how =
      WIFSIGNALED(status)
          ? fmt::format("died of signal {} ({})", WTERMSIG(status), name ? name : "unknown")
          : fmt::format("ended with {}", WEXITSTATUS(status));
  throw Error(Errc::corrupt, fmt::format("the process that reads it with libhdf5 {}", how),
              "RM211");
}

}  // namespace

void run_child(const std::vector<std::string>& command, std::chrono::milliseconds deadline,
               const StopFlag& stop, const TextSink& sink) {
  Child child(command, Clock::now() + deadline, stop);
  for (std::string_view text = child.read(); !text.empty(); text = child.read()) sink(text);
  const int status = child.wait();
  stop.check();
  check_end(status);
}

}  // namespace remesh
