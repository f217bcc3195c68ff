#pragma once

#include <memory>
#include <span>
#include <utility>

#include "remesh/core/progress.hpp"
#include "remesh/store/file_system.hpp"

namespace remesh::native {

/// A file whose reading can be stopped, and tells how far it is.
class WatchedFile final : public File {
 public:
  WatchedFile(std::unique_ptr<File> inner, Progress& progress, const StopFlag& stop)
      : inner_(std::move(inner)), progress_(progress), stop_(stop) {}

  void read_at(std::int64_t offset, std::span<std::byte> into) const override {
    stop_.check();
    inner_->read_at(offset, into);
    progress_.advance(std::ssize(into));
  }
  void write_at(std::int64_t offset, std::span<const std::byte> from) override {
    inner_->write_at(offset, from);
  }
  std::int64_t size_bytes() const override { return inner_->size_bytes(); }
  void sync() override { inner_->sync(); }
  void forget_cache() noexcept override { inner_->forget_cache(); }

 private:
  std::unique_ptr<File> inner_;
  Progress& progress_;
  const StopFlag& stop_;
};

}  // namespace remesh::native
