#include "remesh/store/file_system.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/error.hpp"

namespace remesh {
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
    case ENOSPC:
    case EDQUOT:
      return {Errc::io, "RM702"};
    default:
      return {};
  }
}

[[noreturn]] void fail(const char* verb, const Path& path, int error) {
  const Reason reason = reason_of(error);
  throw Error(reason.code,
              fmt::format("cannot {} '{}': {}", verb, path.string(),
                          std::generic_category().message(error)),
              reason.id);
}

// Owns a file descriptor.
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

Descriptor open_descriptor(const char* verb, const Path& path, int flags) {
  for (;;) {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd >= 0) return Descriptor(fd);
    if (errno != EINTR) fail(verb, path, errno);
  }
}

Descriptor open_directory(const char* verb, const Path& path, int flags = 0) {
  return open_descriptor(verb, path.empty() ? Path(".") : path, O_RDONLY | O_DIRECTORY | flags);
}

void sync_descriptor(int fd, const Path& path) {
  // EINTR says nothing about the data; all other failures are final.
  while (::fsync(fd) != 0) {
    if (errno != EINTR) fail("sync", path, errno);
  }
}

class PosixFile final : public File {
 public:
  PosixFile(Descriptor fd, Path path) : fd_(std::move(fd)), path_(std::move(path)) {}

  void read_at(std::int64_t offset, std::span<std::byte> into) const override;
  void write_at(std::int64_t offset, std::span<const std::byte> from) override;
  std::int64_t size_bytes() const override;
  void sync() override;
  void forget_cache() noexcept override { ::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED); }

 private:
  Descriptor fd_;
  Path path_;
  std::atomic<bool> voided_{false};
};

void PosixFile::read_at(std::int64_t offset, std::span<std::byte> into) const {
  std::size_t done = 0;
  while (done < into.size()) {
    const auto at = offset + static_cast<std::int64_t>(done);
    const ssize_t count = ::pread(fd_.get(), into.data() + done, into.size() - done, at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("read", path_, errno);
    if (count == 0) {
      throw Error(Errc::corrupt,
                  fmt::format("cannot read '{}': it ends at byte {}, but bytes up to {} are needed; "
                              "the file is cut short",
                              path_.string(), at,
                              offset + static_cast<std::int64_t>(into.size())),
                  "RM202");
    }
    done += static_cast<std::size_t>(count);
  }
}

[[noreturn]] void fail_write(const Path& path, std::int64_t offset, std::size_t count, int error) {
  const Reason reason = reason_of(error);
  throw Error(Errc::io,
              fmt::format("cannot write {} bytes at {} of '{}': {}", count, offset, path.string(),
                          std::generic_category().message(error)),
              reason.code == Errc::io ? reason.id : "RM703");
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

EntryKind kind_of(mode_t mode) noexcept {
  if (S_ISREG(mode)) return EntryKind::regular;
  if (S_ISDIR(mode)) return EntryKind::directory;
  if (S_ISLNK(mode)) return EntryKind::link;
  return EntryKind::other;
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

class HeldLock final : public DirectoryLock {
 public:
  explicit HeldLock(Descriptor fd) : fd_(std::move(fd)) {}

 private:
  Descriptor fd_;
};

// For file systems without RENAME_NOREPLACE. rename() replaces nothing but an empty directory.
void rename_checked(const FileSystem& files, const Path& from, const Path& to) {
  if (files.look(to)) fail("rename to", to, EEXIST);
  if (::rename(from.c_str(), to.c_str()) != 0) fail("rename to", to, errno);
}

class PosixFileSystem final : public FileSystem {
 public:
  std::unique_ptr<File> open(const Path& path) const override {
    return open_regular(path, O_RDONLY);
  }

  std::unique_ptr<File> create(const Path& path) override {
    return std::make_unique<PosixFile>(
        open_descriptor("create", path, O_RDWR | O_CREAT | O_EXCL), path);
  }

  std::unique_ptr<File> open_for_writing(const Path& path) override {
    return open_regular(path, O_RDWR);
  }

  std::optional<Entry> look(const Path& path) const override;
  std::vector<Entry> list(const Path& directory) const override;

  void create_directory(const Path& path) override {
    if (::mkdir(path.c_str(), 0777) != 0) fail("create directory", path, errno);
  }

  void remove_all(const Path& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (error) fail("remove", path, error.value());
  }

  void rename_no_replace(const Path& from, const Path& to) override;
  bool sync_directory(const Path& path) override;
  std::unique_ptr<DirectoryLock> try_lock(const Path& directory) override;
  std::int64_t free_bytes(const Path& directory) const override;
};

std::optional<Entry> PosixFileSystem::look(const Path& path) const {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    fail("look at", path, errno);
  }
  const EntryKind kind = kind_of(status.st_mode);
  return Entry{path.filename().string(), kind, kind == EntryKind::regular ? status.st_size : 0};
}

std::vector<Entry> PosixFileSystem::list(const Path& directory) const {
  std::vector<Entry> entries;
  std::error_code error;
  std::filesystem::directory_iterator at(directory, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    if (auto entry = look(at->path())) entries.push_back(std::move(*entry));
  }
  if (error) fail("list", directory, error.value());
  std::ranges::sort(entries, {}, &Entry::name);
  return entries;
}

void PosixFileSystem::rename_no_replace(const Path& from, const Path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS) fail("rename to", to, errno);
  rename_checked(*this, from, to);
}

bool PosixFileSystem::sync_directory(const Path& path) {
  const Descriptor fd = open_directory("sync directory", path);
  while (::fsync(fd.get()) != 0) {
    if (errno == EINVAL) return false;
    if (errno != EINTR) fail("sync directory", path, errno);
  }
  return true;
}

std::unique_ptr<DirectoryLock> PosixFileSystem::try_lock(const Path& directory) {
  Descriptor fd = open_directory("lock", directory);
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return nullptr;
    if (errno != EINTR) fail("lock", directory, errno);
  }
  return std::make_unique<HeldLock>(std::move(fd));
}

std::int64_t PosixFileSystem::free_bytes(const Path& directory) const {
  struct statvfs status {};
  if (::statvfs(directory.empty() ? "." : directory.c_str(), &status) != 0) {
    fail("ask for free space of", directory, errno);
  }
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const std::uint64_t block = std::max<std::uint64_t>(1, status.f_frsize);
  const std::uint64_t blocks = std::min<std::uint64_t>(status.f_bavail, most / block);
  return static_cast<std::int64_t>(blocks * block);
}

bool is_control(char character) noexcept {
  const auto code = static_cast<unsigned char>(character);
  return code < 0x20 || code == 0x7F;
}

}  // namespace

FileSystem& posix_file_system() {
  static PosixFileSystem files;
  return files;
}

std::string read_text(const FileSystem& files, const Path& path, std::int64_t limit_bytes) {
  const std::unique_ptr<File> file = files.open(path);
  const std::int64_t size = file->size_bytes();
  if (size > limit_bytes) {
    throw Error(Errc::out_of_memory,
                fmt::format("cannot read '{}': it has {} bytes, but at most {} are allowed here",
                            path.string(), size, limit_bytes),
                "RM605");
  }
  std::string text(static_cast<std::size_t>(size), '\0');
  file->read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

void check_component(std::string_view name, std::string_view where) {
  constexpr std::size_t longest_bytes = 255;
  const bool plain = !name.empty() && name != "." && name != ".." && name.size() <= longest_bytes &&
                     name.find('/') == std::string_view::npos &&
                     std::ranges::none_of(name, is_control);
  if (plain) return;
  throw Error(Errc::unsafe,
              fmt::format("cannot use the file name {:?} that '{}' gives: it is not one plain path "
                          "component of 1 to {} bytes",
                          name.substr(0, longest_bytes), where, longest_bytes),
              "RM603");
}

}  // namespace remesh
