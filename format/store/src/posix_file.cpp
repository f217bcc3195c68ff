#include "posix_file.hpp"

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <system_error>

#include <fmt/format.h>
#include <sys/stat.h>

#include "remesh/core/error.hpp"
#include "remesh/store/fail_to_write.hpp"

namespace remesh::posix {
namespace {

using Path = FileSystem::Path;

// What a caller can act on, for the system's reasons that mean more than "the file system refused".
struct Reason {
  Errc code = Errc::io;
  const char* id = "RM703";
};

Reason reason_of(int error) noexcept {
  switch (error) {
    case ENOENT:
      return {Errc::not_found, ""};
    case EEXIST:
    case ENOTEMPTY:
      return {Errc::exists, ""};
    case ELOOP:
      return {Errc::unsafe, "RM604"};
    case EACCES:
    case EPERM:
    case EROFS:
      return {Errc::io, "RM706"};
    case ENOSPC:
    case EDQUOT:
      return {Errc::io, "RM702"};
    default:
      return {};
  }
}

[[noreturn]] void fail_write(const Path& path, std::int64_t offset, std::size_t count, int error) {
  fail_to_write(fmt::format("write {} bytes at {} of '{}'", count, offset, path.string()), error);
}

void sync_descriptor(int fd, const Path& path) {
  // EINTR says nothing about the data; all other failures are final.
  while (::fsync(fd) != 0) {
    if (errno != EINTR) fail("sync", path, errno);
  }
}

// So much may wait to be sent to the medium. Systems wait for more, and the sync at the end for all
// of it.
constexpr std::int64_t most_unsent_bytes = std::int64_t{32} << 20;

class PosixFile final : public File {
 public:
  PosixFile(Descriptor fd, Path path) : fd_(std::move(fd)), path_(std::move(path)) {}

  void read_at(std::int64_t offset, std::span<std::byte> into) const override;
  void write_at(std::int64_t offset, std::span<const std::byte> from) override;
  std::int64_t size_bytes() const override;
  void sync() override;
  void forget_cache() noexcept override { ::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED); }

 private:
  void send_early(std::int64_t bytes) noexcept;

  Descriptor fd_;
  Path path_;
  std::atomic<bool> voided_{false};
  std::atomic<std::int64_t> unsent_bytes_{0};
};

void PosixFile::read_at(std::int64_t offset, std::span<std::byte> into) const {
  std::size_t done = 0;
  while (done < into.size()) {
    const auto at = offset + static_cast<std::int64_t>(done);
    const ssize_t count = ::pread(fd_.get(), into.data() + done, into.size() - done, at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("read", path_, errno);
    if (count == 0) {
      throw Error(
          Errc::corrupt,
          fmt::format("cannot read '{}': it ends at byte {}, but bytes up to {} are needed; "
                      "the file is cut short",
                      path_.string(), at, offset + static_cast<std::int64_t>(into.size())),
          "RM202");
    }
    done += static_cast<std::size_t>(count);
  }
}

void PosixFile::write_at(std::int64_t offset, std::span<const std::byte> from) {
  std::size_t done = 0;
  while (done < from.size()) {
    const auto at = offset + static_cast<std::int64_t>(done);
    const ssize_t count = ::pwrite(fd_.get(), from.data() + done, from.size() - done, at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail_write(path_, offset, from.size(), count < 0 ? errno : EIO);
    done += static_cast<std::size_t>(count);
  }
  send_early(std::ssize(from));
}

// Has the system begin with what waits; it waits itself only where the medium's queue is full. A
// hint: sync() tells of failures.
void PosixFile::send_early(std::int64_t bytes) noexcept {
  if (unsent_bytes_.fetch_add(bytes) + bytes < most_unsent_bytes) return;
  unsent_bytes_.store(0);
#if defined(__linux__)
  ::sync_file_range(fd_.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
#endif
}

std::int64_t PosixFile::size_bytes() const {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) fail("look at", path_, errno);
  return status.st_size;
}

// After a failed fsync the kernel may call lost pages clean: a second call would report success.
void PosixFile::sync() {
  if (voided_.load()) {
    throw Error(Errc::io,
                fmt::format("cannot sync '{}': an earlier sync of it failed", path_.string()),
                "RM703");
  }
  voided_.store(true);
  sync_descriptor(fd_.get(), path_);
  voided_.store(false);
}

}  // namespace

[[noreturn]] void fail(const char* verb, const Path& path, int error) {
  const Reason reason = reason_of(error);
  throw Error(reason.code,
              fmt::format("cannot {} '{}': {}", verb, path.string(),
                          std::generic_category().message(error)),
              reason.id);
}

Descriptor open_descriptor(const char* verb, const Path& path, int flags) {
  for (;;) {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd >= 0) return Descriptor(fd);
    if (errno != EINTR) fail(verb, path, errno);
  }
}

std::unique_ptr<File> open_regular(const Path& path, int flags) {
  // O_NONBLOCK: opening a FIFO must not wait for its other end. Regular files ignore it.
  Descriptor fd = open_descriptor("open", path, flags | O_NONBLOCK);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) fail("look at", path, errno);
  if (!S_ISREG(status.st_mode)) {
    throw Error(Errc::unsafe,
                fmt::format("cannot open '{}': it is not a regular file", path.string()), "RM604");
  }
  return std::make_unique<PosixFile>(std::move(fd), path);
}

std::unique_ptr<File> create_regular(const Path& path) {
  return std::make_unique<PosixFile>(open_descriptor("create", path, O_RDWR | O_CREAT | O_EXCL),
                                     path);
}

}  // namespace remesh::posix

namespace remesh {

[[noreturn]] void fail_to_write(const std::string& attempt, int error) {
  const posix::Reason reason = posix::reason_of(error);
  throw Error(Errc::io,
              fmt::format("cannot {}: {}", attempt, std::generic_category().message(error)),
              reason.code == Errc::io ? reason.id : "RM703");
}

}  // namespace remesh
