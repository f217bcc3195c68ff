#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "remesh/store/file_system.hpp"

namespace remesh {

/// A file system that passes every call on to another one, which must outlive it. Those that change
/// a few of its answers derive from it.
class ForwardingFileSystem : public FileSystem {
 public:
  explicit ForwardingFileSystem(FileSystem& inner) : inner_(inner) {}

  std::unique_ptr<File> open(const Path& path) const override { return inner_.open(path); }
  std::unique_ptr<File> create(const Path& path) override { return inner_.create(path); }
  std::unique_ptr<File> open_for_writing(const Path& path) override {
    return inner_.open_for_writing(path);
  }
  std::optional<Entry> look(const Path& path) const override { return inner_.look(path); }
  std::vector<Entry> list(const Path& directory) const override { return inner_.list(directory); }
  void create_directory(const Path& path) override { inner_.create_directory(path); }
  void remove_all(const Path& path) override { inner_.remove_all(path); }
  void rename_no_replace(const Path& from, const Path& to) override {
    inner_.rename_no_replace(from, to);
  }
  bool sync_directory(const Path& path) override { return inner_.sync_directory(path); }
  std::unique_ptr<DirectoryLock> try_lock(const Path& directory) override {
    return inner_.try_lock(directory);
  }
  std::int64_t free_bytes(const Path& directory) const override {
    return inner_.free_bytes(directory);
  }

 protected:
  FileSystem& inner() const noexcept { return inner_; }

 private:
  FileSystem& inner_;
};

}  // namespace remesh
