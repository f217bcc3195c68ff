#pragma once

#include <memory>
#include <unistd.h>
#include <utility>

#include "remesh/store/file_system.hpp"

/// @file
/// Files of the machine's own file system, and what goes wrong with its calls.

namespace remesh::posix {

/// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

/// Throws the Error that `error`, an errno, stands for: "cannot <verb> '<path>': <reason>".
[[noreturn]] void fail(const char* verb, const FileSystem::Path& path, int error);

/// open(2) with `flags`, without following links in the last component.
Descriptor open_descriptor(const char* verb, const FileSystem::Path& path, int flags);

/// As FileSystem::open and open_for_writing.
std::unique_ptr<File> open_regular(const FileSystem::Path& path, int flags);

/// As FileSystem::create.
std::unique_ptr<File> create_regular(const FileSystem::Path& path);

}  // namespace remesh::posix
