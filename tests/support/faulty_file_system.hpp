#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "remesh/core/error.hpp"
#include "remesh/store/file_system.hpp"

namespace remesh::test {

/// A file system that fails on request. It counts the calls that change something: create,
/// open_for_writing, create_directory, remove_all, rename_no_replace, sync_directory, and write_at
/// and sync of each file.
class FaultyFileSystem final : public FileSystem {
 public:
  explicit FaultyFileSystem(FileSystem& inner) : inner_(inner) {}

  /// Call `number` (the first that changes something is 0) throws Error(io) and changes nothing.
  void fail_at(std::int64_t number) { counter_->fail_at(number, number); }

  /// So do all calls from that one on: the machine has stopped.
  void stop_at(std::int64_t number) {
    counter_->fail_at(number, std::numeric_limits<std::int64_t>::max());
  }

  /// Attempt `number` to lock a directory (the first is 0) throws Error(io).
  void fail_lock_at(std::int64_t number) { failing_lock_ = number; }

  /// What was done to files, in order: a write at an offset, or a sync (offset -1).
  struct Event {
    Path path;
    std::int64_t offset = -1;
  };
  const std::vector<Event>& events() const noexcept { return counter_->events; }

  /// The calls that changed something, or should have.
  std::int64_t calls() const noexcept { return counter_->calls(); }

  std::unique_ptr<File> open(const Path& path) const override {
    return std::make_unique<FaultyFile>(inner_.open(path), path, counter_);
  }
  std::unique_ptr<File> create(const Path& path) override {
    counter_->count("create");
    return std::make_unique<FaultyFile>(inner_.create(path), path, counter_);
  }
  std::unique_ptr<File> open_for_writing(const Path& path) override {
    counter_->count("open_for_writing");
    return std::make_unique<FaultyFile>(inner_.open_for_writing(path), path, counter_);
  }
  std::optional<Entry> look(const Path& path) const override { return inner_.look(path); }
  std::vector<Entry> list(const Path& directory) const override { return inner_.list(directory); }
  void create_directory(const Path& path) override {
    counter_->count("create_directory");
    inner_.create_directory(path);
  }
  void remove_all(const Path& path) override {
    counter_->count("remove_all");
    inner_.remove_all(path);
  }
  void rename_no_replace(const Path& from, const Path& to) override {
    counter_->count("rename_no_replace");
    inner_.rename_no_replace(from, to);
  }
  bool sync_directory(const Path& path) override {
    counter_->count("sync_directory");
    return inner_.sync_directory(path);
  }
  std::unique_ptr<DirectoryLock> try_lock(const Path& directory) override {
    if (locks_++ == failing_lock_) throw Error(Errc::io, "try_lock: injected failure");
    return inner_.try_lock(directory);
  }
  std::int64_t free_bytes(const Path& directory) const override {
    return inner_.free_bytes(directory);
  }

 private:
  class Counter {
   public:
    void fail_at(std::int64_t first, std::int64_t last) {
      first_ = first;
      last_ = last;
    }
    void count(const char* what) {
      const std::int64_t number = calls_++;
      if (number < first_ || number > last_) return;
      throw Error(Errc::io,
                  std::string(what) + ": injected failure of call " + std::to_string(number));
    }
    std::int64_t calls() const noexcept { return calls_; }
    void note(Event event) {
      const std::lock_guard lock(mutex_);
      events.push_back(std::move(event));
    }

    std::vector<Event> events;

   private:
    std::mutex mutex_;
    std::atomic<std::int64_t> calls_{0};
    std::atomic<std::int64_t> first_{std::numeric_limits<std::int64_t>::max()};
    std::atomic<std::int64_t> last_{std::numeric_limits<std::int64_t>::max()};
  };

  class FaultyFile final : public File {
   public:
    FaultyFile(std::unique_ptr<File> inner, Path path, std::shared_ptr<Counter> counter)
        : inner_(std::move(inner)), path_(std::move(path)), counter_(std::move(counter)) {}

    void read_at(std::int64_t offset, std::span<std::byte> into) const override {
      inner_->read_at(offset, into);
    }
    void write_at(std::int64_t offset, std::span<const std::byte> from) override {
      counter_->count("write_at");
      counter_->note({path_, offset});
      inner_->write_at(offset, from);
    }
    std::int64_t size_bytes() const override { return inner_->size_bytes(); }
    void sync() override {
      counter_->count("sync");
      counter_->note({path_, -1});
      inner_->sync();
    }
    void forget_cache() noexcept override { inner_->forget_cache(); }

   private:
    std::unique_ptr<File> inner_;
    const Path path_;
    std::shared_ptr<Counter> counter_;
  };

  FileSystem& inner_;
  std::int64_t locks_ = 0;
  std::int64_t failing_lock_ = -1;
  std::shared_ptr<Counter> counter_ = std::make_shared<Counter>();
};

}  // namespace remesh::test
