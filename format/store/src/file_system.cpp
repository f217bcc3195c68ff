#include "remesh/store/file_system.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <limits>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "posix_file.hpp"
#include "remesh/core/error.hpp"

namespace remesh {
namespace {

using posix::Descriptor;
using posix::fail;
using Path = FileSystem::Path;

Descriptor open_directory(const char* verb, const Path& path, int flags = 0) {
  return posix::open_descriptor(verb, path.empty() ? Path(".") : path,
                                O_RDONLY | O_DIRECTORY | flags);
}

EntryKind kind_of(mode_t mode) noexcept {
  if (S_ISREG(mode)) return EntryKind::regular;
  if (S_ISDIR(mode)) return EntryKind::directory;
  if (S_ISLNK(mode)) return EntryKind::link;
  return EntryKind::other;
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
    return posix::open_regular(path, O_RDONLY);
  }

  std::unique_ptr<File> create(const Path& path) override { return posix::create_regular(path); }

  std::unique_ptr<File> open_for_writing(const Path& path) override {
    return posix::open_regular(path, O_RDWR);
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
  constexpr std::int64_t second_ns = 1'000'000'000;
  return Entry{path.filename().string(), kind, kind == EntryKind::regular ? status.st_size : 0,
               status.st_mtim.tv_sec * second_ns + status.st_mtim.tv_nsec, status.st_ino};
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

std::string read_text(const FileSystem& files, const Path& path, std::int64_t limit_bytes,
                      std::size_t room_bytes) {
  const std::unique_ptr<File> file = files.open(path);
  const std::int64_t size = file->size_bytes();
  if (size > limit_bytes) {
    throw Error(Errc::out_of_memory,
                fmt::format("cannot read '{}': it has {} bytes, but at most {} are allowed here",
                            path.string(), size, limit_bytes),
                "RM605");
  }
  std::string text;
  text.reserve(static_cast<std::size_t>(size) + room_bytes);
  text.resize(static_cast<std::size_t>(size));
  file->read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

void write_whole(FileSystem& files, const Path& path, std::span<const std::byte> bytes) {
  const std::unique_ptr<File> file = files.create(path);
  file->write_at(0, bytes);
  file->sync();
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
