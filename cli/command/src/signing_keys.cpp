#include "signing_keys.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <span>
#include <string_view>
#include <termios.h>
#include <unistd.h>

#include <fmt/format.h>

#include "remesh/core/error.hpp"
#include "remesh/store/secret.hpp"

namespace remesh {
namespace {

constexpr const char* password_variable = "REMESH_KEY_PASSWORD";
constexpr std::size_t longest_password_bytes = 1024;
constexpr std::int64_t longest_public_key_bytes = 4096;

// The terminal of this process, whatever its standard streams are. What is typed is not shown while
// this lives.
class SilentTerminal {
 public:
  SilentTerminal() : descriptor_(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)) {
    if (descriptor_ < 0) {
      throw Error(Errc::invalid_argument,
                  fmt::format("it is encrypted, and there is no terminal to ask for its password; "
                              "the environment variable {} may hold it",
                              password_variable));
    }
    is_silent_ = ::tcgetattr(descriptor_, &before_) == 0;
    if (!is_silent_) return;
    termios silent = before_;
    silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    ::tcsetattr(descriptor_, TCSAFLUSH, &silent);
  }
  SilentTerminal(const SilentTerminal&) = delete;
  SilentTerminal& operator=(const SilentTerminal&) = delete;
  ~SilentTerminal() {
    print("\n");
    if (is_silent_) ::tcsetattr(descriptor_, TCSAFLUSH, &before_);
    ::close(descriptor_);
  }

  void print(std::string_view text) const {
    // Without its question the terminal can still give the answer.
    [[maybe_unused]] const ssize_t ignored = ::write(descriptor_, text.data(), text.size());
  }

  // A line, with its end unless it was ended by Ctrl-D. Waits in short steps, so that a signal does
  // not have to be sent twice: the second one would leave the terminal silent.
  std::size_t read_line(std::span<std::byte> into, const StopFlag& stop) const {
    constexpr int step_milliseconds = 50;
    while (true) {
      stop.check();
      pollfd wanted{.fd = descriptor_, .events = POLLIN, .revents = 0};
      if (::poll(&wanted, 1, step_milliseconds) <= 0) continue;
      const ssize_t count = ::read(descriptor_, into.data(), into.size());
      if (count > 0) return static_cast<std::size_t>(count);
      if (count < 0 && errno == EINTR) continue;
      throw Error(Errc::invalid_argument, "it is encrypted, and no password was given");
    }
  }

 private:
  int descriptor_;
  bool is_silent_ = false;
  termios before_{};
};

Secret typed_password(const std::string& path, const StopFlag& stop) {
  const SilentTerminal terminal;
  terminal.print(fmt::format("Password of {}: ", path));
  Secret password(longest_password_bytes);
  const std::size_t size = terminal.read_line(password.bytes(), stop);
  if (size == longest_password_bytes) {
    throw Error(Errc::invalid_argument,
                fmt::format("its password is longer than {} bytes", longest_password_bytes - 2));
  }
  password.shrink(password.bytes()[size - 1] == std::byte{'\n'} ? size - 1 : size);
  return password;
}

PublicKey parsed(std::string_view text, const std::string& name) {
  try {
    return parse_public_key(text);
  } catch (const Error& error) {
    throw Error(Errc::invalid_argument,
                fmt::format("cannot use the public key {}: {}", name, error.what()));
  }
}

}  // namespace

std::shared_ptr<const SecretKey> signing_key(const FileSystem& files, const std::string& path,
                                             const StopFlag& stop) {
  if (path.empty()) return nullptr;
  const auto ask = [&path, &stop] {
    const char* const password =
        std::getenv(password_variable);  // NOLINT(concurrency-mt-unsafe): before any thread
    return password != nullptr ? Secret(std::string_view(password)) : typed_password(path, stop);
  };
  return std::make_shared<const SecretKey>(read_secret_key(files, path, ask));
}

PublicKey checking_key(const FileSystem& files, const std::string& text) {
  if (files.look(text)) {
    return parsed(read_text(files, text, longest_public_key_bytes), fmt::format("'{}'", text));
  }
  if (text.starts_with("RW")) return parsed(text, "of `--key`");
  throw Error(Errc::invalid_argument,
              "cannot use what `--key` says: it is neither a file nor a public key as minisign "
              "writes it, which has 56 characters of base64 that begin with 'RW'");
}

}  // namespace remesh
