#include "remesh/store/resuming_file_system.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/error.hpp"
#include "remesh/store/staging.hpp"

namespace remesh {
namespace {

constexpr std::int64_t compared_bytes = std::int64_t{256} << 10;

// Whether a path lies in the temporary directory of a job, or in a directory of it.
bool is_in_staging(const FileSystem::Path& path) {
  const FileSystem::Path parent = path.parent_path();
  return is_staging_name(parent.filename().string()) ||
         is_staging_name(parent.parent_path().filename().string());
}

}  // namespace

// A file that was there: what is to be written is compared with it first.
class ResumingFileSystem::Resumed final : public File {
 public:
  Resumed(std::unique_ptr<File> inner, std::shared_ptr<std::atomic<std::int64_t>> kept, End end)
      : inner_(std::move(inner)),
        kept_(std::move(kept)),
        end_(std::move(end)),
        size_(inner_->size_bytes()) {}

  void read_at(std::int64_t offset, std::span<std::byte> into) const override {
    inner_->read_at(offset, into);
  }
  void write_at(std::int64_t offset, std::span<const std::byte> from) override {
    std::vector<std::byte> there;
    reach(offset + std::ssize(from));
    while (!from.empty()) {
      const auto part =
          from.first(static_cast<std::size_t>(std::min(compared_bytes, std::ssize(from))));
      write_part(offset, part, there);
      offset += std::ssize(part);
      from = from.subspan(part.size());
    }
  }
  std::int64_t size_bytes() const override { return inner_->size_bytes(); }
  void sync() override { inner_->sync(); }
  void forget_cache() noexcept override { inner_->forget_cache(); }

 private:
  void reach(std::int64_t end) {
    std::int64_t known = *end_;
    while (known < end && !end_->compare_exchange_weak(known, end)) {
    }
  }

  void write_part(std::int64_t offset, std::span<const std::byte> part,
                  std::vector<std::byte>& there) {
    if (offset + std::ssize(part) <= size_) {
      there.resize(part.size());
      inner_->read_at(offset, there);
      if (std::ranges::equal(there, part)) {
        *kept_ += std::ssize(part);
        return;
      }
    }
    inner_->write_at(offset, part);
  }

  const std::unique_ptr<File> inner_;
  const std::shared_ptr<std::atomic<std::int64_t>> kept_;
  const End end_;
  const std::int64_t size_;  // when it was opened: what lies behind cannot be compared
};

std::int64_t ResumingFileSystem::kept_bytes() const noexcept { return kept_->load(); }

std::unique_ptr<File> ResumingFileSystem::create(const Path& path) {
  const auto entry = is_in_staging(path) ? inner().look(path) : std::nullopt;
  if (!entry) return inner().create(path);
  std::unique_ptr<File> file = inner().open_for_writing(path);
  file->sync();
  file->forget_cache();
  const auto end = std::make_shared<std::atomic<std::int64_t>>(0);
  {
    const std::lock_guard lock(mutex_);
    found_[path] = end;
  }
  return std::make_unique<Resumed>(std::move(file), kept_, end);
}

std::unique_ptr<File> ResumingFileSystem::open_for_writing(const Path& path) {
  std::unique_ptr<File> file = inner().open_for_writing(path);
  const std::lock_guard lock(mutex_);
  const auto found = found_.find(path);
  if (found == found_.end()) return file;
  return std::make_unique<Resumed>(std::move(file), kept_, found->second);
}

void ResumingFileSystem::create_directory(const Path& path) {
  const auto entry = is_in_staging(path) ? inner().look(path) : std::nullopt;
  if (entry && entry->kind == EntryKind::directory) return;
  inner().create_directory(path);
}

void ResumingFileSystem::rename_no_replace(const Path& from, const Path& to) {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [path, end] : found_) {
      const auto entry = inner().look(path);
      if (!entry || entry->size_bytes <= *end) continue;
      throw Error(Errc::unsafe,
                  fmt::format("cannot resume what is in '{}': it has {} bytes, but this job writes "
                              "{}; something else wrote into it, so `--discard` it and start anew",
                              path.string(), entry->size_bytes, end->load()));
    }
  }
  inner().rename_no_replace(from, to);
}

}  // namespace remesh
