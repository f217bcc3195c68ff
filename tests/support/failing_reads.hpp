#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "remesh/core/error.hpp"
#include "remesh/store/forwarding_file_system.hpp"

namespace remesh::test {

/// A file system of which one read fails, as on a medium that cannot give a sector back. Counts the
/// reads of all files that were opened for reading. For one thread.
class FailingReads final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;

  /// Read `number` (the first is 0) throws Error(io).
  void fail_at(std::int64_t number) { failing_ = number; }
  std::int64_t reads() const noexcept { return reads_; }

  std::unique_ptr<File> open(const Path& path) const override {
    return std::make_unique<Source>(inner().open(path), *this);
  }

 private:
  class Source final : public File {
   public:
    Source(std::unique_ptr<File> inner, const FailingReads& owner)
        : inner_(std::move(inner)), owner_(owner) {}

    void read_at(std::int64_t offset, std::span<std::byte> into) const override {
      const std::int64_t number = owner_.reads_++;
      if (number == owner_.failing_) {
        throw Error(Errc::io, "injected failure of read " + std::to_string(number), "RM703");
      }
      inner_->read_at(offset, into);
    }
    void write_at(std::int64_t offset, std::span<const std::byte> from) override {
      inner_->write_at(offset, from);
    }
    std::int64_t size_bytes() const override { return inner_->size_bytes(); }
    void sync() override { inner_->sync(); }
    void forget_cache() noexcept override { inner_->forget_cache(); }

   private:
    std::unique_ptr<File> inner_;
    const FailingReads& owner_;
  };

  mutable std::int64_t reads_ = 0;
  std::int64_t failing_ = -1;
};

}  // namespace remesh::test
