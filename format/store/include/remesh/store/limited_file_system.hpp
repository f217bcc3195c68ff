#pragma once

#include <cstdint>
#include <memory>

#include "remesh/core/progress.hpp"
#include "remesh/store/file_system.hpp"

namespace remesh {

/// A file system that reads no faster than so many bytes a second, all its files and all threads
/// together: for storage that others use too. All else passes through.
class LimitedFileSystem final : public FileSystem {
 public:
  /// `inner` and `stop` must outlive this. A rate of 0 is no limit. A read that waits for its turn
  /// waits no longer once a stop is asked for.
  LimitedFileSystem(FileSystem& inner, std::int64_t bytes_per_second,
                    const StopFlag* stop = nullptr);
  ~LimitedFileSystem() override;

  std::unique_ptr<File> open(const Path& path) const override;
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

 private:
  class Rate;
  class LimitedFile;

  FileSystem& inner_;
  std::shared_ptr<Rate> rate_;
};

}  // namespace remesh
