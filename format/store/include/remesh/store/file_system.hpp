#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace remesh {

/// An open regular file. Reads and writes name their offset, so that many threads may use it.
class File {
 public:
  virtual ~File() = default;

  /// Fills `into` from `offset`. Throws Error(io) if the system refuses, and Error(corrupt, RM202),
  /// which names the file and both numbers, if the file ends before.
  virtual void read_at(std::int64_t offset, std::span<std::byte> into) const = 0;

  /// Writes all of `from` at `offset`, growing the file if need be. Throws Error(io); "no space
  /// left" says how much this write was.
  virtual void write_at(std::int64_t offset, std::span<const std::byte> from) = 0;

  virtual std::int64_t size_bytes() const = 0;

  /// Returns when content and size are on the medium. A failure is final for this file: it is never
  /// tried again. Throws Error(io).
  virtual void sync() = 0;

  /// Tells the system that cached pages of this file will not be needed: a later read comes from
  /// the medium. A hint; never fails.
  virtual void forget_cache() noexcept = 0;
};

enum class EntryKind { regular, directory, link, other };

struct Entry {
  std::string name;  ///< one path component
  EntryKind kind = EntryKind::other;
  std::int64_t size_bytes = 0;  ///< of a regular file
  std::int64_t changed_ns = 0;  ///< when its content last changed, since 1970; 0: not known
  std::uint64_t inode = 0;      ///< its number in the file system; 0: not known
};

/// Held until destroyed.
class DirectoryLock {
 public:
  virtual ~DirectoryLock() = default;
};

/// The few things that remesh asks of a file system. Injectable, so that faults can be injected.
/// All throw Error(io) with the path and the system's reason, where nothing else is said.
class FileSystem {
 public:
  using Path = std::filesystem::path;

  virtual ~FileSystem() = default;

  /// For reading. Links are not followed in the last component; anything but a regular file is
  /// Error(unsafe, RM604). Throws Error(not_found) if there is none.
  virtual std::unique_ptr<File> open(const Path& path) const = 0;
  /// A new file, for reading and writing. Throws Error(exists) if something is there, links
  /// included.
  virtual std::unique_ptr<File> create(const Path& path) = 0;
  /// An existing file, for reading and writing: those that a foreign library created for us.
  virtual std::unique_ptr<File> open_for_writing(const Path& path) = 0;

  /// What lies at a path (links not followed); nothing if nothing does.
  virtual std::optional<Entry> look(const Path& path) const = 0;
  /// The entries of a directory, sorted by name, without "." and "..".
  virtual std::vector<Entry> list(const Path& directory) const = 0;

  /// Throws Error(exists) if something is there.
  virtual void create_directory(const Path& path) = 0;
  /// Removes a file, or a directory with all in it. Nothing there is no error.
  virtual void remove_all(const Path& path) = 0;
  /// Renames a directory; never replaces anything. Throws Error(exists).
  virtual void rename_no_replace(const Path& from, const Path& to) = 0;
  /// False where the file system cannot do it (EINVAL); any other failure throws.
  virtual bool sync_directory(const Path& path) = 0;

  /// An exclusive advisory lock on a directory; nothing if somebody else holds it.
  virtual std::unique_ptr<DirectoryLock> try_lock(const Path& directory) = 0;
  /// Bytes that this user may still write there.
  virtual std::int64_t free_bytes(const Path& directory) const = 0;
};

/// The machine's own.
FileSystem& posix_file_system();

/// Reads a small file whole. Throws Error(out_of_memory, RM605) if it is larger than `limit_bytes`.
/// `room_bytes` more can be appended without a copy.
std::string read_text(const FileSystem& files, const FileSystem::Path& path,
                      std::int64_t limit_bytes, std::size_t room_bytes = 0);

/// Creates a file with these bytes and syncs it. Throws as FileSystem::create and File do.
void write_whole(FileSystem& files, const FileSystem::Path& path, std::span<const std::byte> bytes);

/// Throws Error(unsafe, RM603) unless `name`, found inside a file of the checkpoint `where`, is one
/// plain path component: not empty, ".", "..", no '/', no control characters, at most 255 bytes.
void check_component(std::string_view name, std::string_view where);

}  // namespace remesh
