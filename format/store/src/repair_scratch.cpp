#include "repair_scratch.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "remesh/core/error.hpp"

namespace remesh::native {

// Pages that were never written are zeros.
struct ScratchFiles::Content {
  static constexpr std::int64_t page_bytes = 4096;
  using Page = std::array<std::byte, page_bytes>;

  std::map<std::int64_t, Page> pages;
  std::int64_t size_bytes = 0;

  // Calls `visit` with the number of each page that [offset, offset + length) touches, where in it
  // the bytes begin, where in the range, and how many they are.
  template <typename Visit>
  static void for_each_page(std::int64_t offset, std::int64_t length, Visit visit) {
    for (std::int64_t at = 0; at < length;) {
      const std::int64_t within = (offset + at) % page_bytes;
      const std::int64_t count = std::min(page_bytes - within, length - at);
      visit((offset + at) / page_bytes, within, at, count);
      at += count;
    }
  }
};

class ScratchFiles::ScratchFile final : public File {
 public:
  explicit ScratchFile(std::shared_ptr<Content> content) : content_(std::move(content)) {}

  void read_at(std::int64_t offset, std::span<std::byte> into) const override {
    if (offset + std::ssize(into) > content_->size_bytes) {
      throw Error(Errc::corrupt,
                  fmt::format("cannot read [{}, {}) of a file in memory: it has {} bytes", offset,
                              offset + std::ssize(into), content_->size_bytes),
                  "RM202");
    }
    Content::for_each_page(
        offset, std::ssize(into), [&](std::int64_t page, auto within, auto at, auto count) {
          const auto found = content_->pages.find(page);
          if (found == content_->pages.end()) {
            std::fill_n(into.begin() + at, count, std::byte{0});
          } else {
            std::copy_n(found->second.begin() + within, count, into.begin() + at);
          }
        });
  }

  void write_at(std::int64_t offset, std::span<const std::byte> from) override {
    Content::for_each_page(
        offset, std::ssize(from), [&](std::int64_t page, auto within, auto at, auto count) {
          std::copy_n(from.begin() + at, count, content_->pages[page].begin() + within);
        });
    content_->size_bytes = std::max(content_->size_bytes, offset + std::ssize(from));
  }

  std::int64_t size_bytes() const override { return content_->size_bytes; }
  void sync() override {}
  void forget_cache() noexcept override {}

 private:
  const std::shared_ptr<Content> content_;
};

std::unique_ptr<File> ScratchFiles::open(const Path& path) const {
  const auto found = files_.find(path);
  if (found == files_.end()) return inner().open(path);
  return std::make_unique<ScratchFile>(found->second);
}

std::unique_ptr<File> ScratchFiles::create(const Path& path) {
  auto content = std::make_shared<Content>();
  files_[path] = content;
  return std::make_unique<ScratchFile>(std::move(content));
}

}  // namespace remesh::native
